"""Packs what student_gpu.py reads, small enough to be carried to another machine.

    python student_bundle.py WORK --collections DIR --scifact DIR --bge DIR --e5 DIR

WORK is what student_texts.py wrote, COLLECTIONS what benches/fusions/collections.mjs wrote, SCIFACT a collection; `--bge` and `--e5` are
folders in Hugging Face's layout. WORK/bundle gets `texts`, `sample` (some of them, to try the program with), `sets` (what is developed
with and judged by) and the weights of each model, as archives of NumPy behind xz. All models share one vocabulary, so a text is
tokenized once. Matrices of teachers are bytes with a scale for each row.
"""

import argparse
import io
import json
import lzma
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from build_models import DENSE, SPARSE, TRANSFORM, in_bytes, package_weights, truncating_tokenizer
from judge_student import collection
from student_texts import PASSAGE_TOKENS, QUERY_TOKENS, Bm25

# A collection's documents are cut to so many tokens: what is judged by in full, as the server does, the others for speed.
DEV_TOKENS, JUDGED_TOKENS = 256, 512
DEV = ("scifact", "cloze", "wordnet-words", "wordnet-examples", "wordnet-related")
JUDGED = ("squad", "wordnet-words", "wordnet-examples", "wordnet-related")
SAMPLE = 40
STEMS = 32768
# Tokens of a passage with the special ones; glosses are short.
LONGEST = {"prose": PASSAGE_TOKENS + 2, "wordnet": 40}
# The names of a layer's parts in Transformers and in these archives.
PARTS = {"attention.self.query": "q", "attention.self.key": "k", "attention.self.value": "v", "attention.output.dense": "o",
         "attention.output.LayerNorm": "ln1", "intermediate.dense": "up", "output.dense": "down", "output.LayerNorm": "ln2"}


def renamed(weights):
    """The weights of a BERT in short names, with the first token type added to the positions."""
    prefix = "bert." if "bert.embeddings.word_embeddings.weight" in weights else ""
    end = lambda part: {"weight": "w", "gamma": "w", "bias": "b", "beta": "b"}[part]
    positions, types = (weights.get(f"{prefix}embeddings.{name}_embeddings.weight") for name in ("position", "token_type"))
    found = {"word": weights[f"{prefix}embeddings.word_embeddings.weight"], "position": positions if types is None else positions + types[0]}
    for name, array in weights.items():
        if name.startswith(f"{prefix}embeddings.LayerNorm."):
            found["ln." + end(name.split(".")[-1])] = array
        elif name.startswith(f"{prefix}encoder.layer."):
            number, _, rest = name.removeprefix(f"{prefix}encoder.layer.").partition(".")
            part, _, last = rest.rpartition(".")
            found[f"{number}.{PARTS[part]}.{end(last)}"] = array
        elif name.startswith(TRANSFORM):
            part, _, last = name.removeprefix(TRANSFORM).partition(".")
            found[f"transform.{'ln.' if part == 'LayerNorm' else ''}{end(last)}"] = array
    if "cls.predictions.bias" in weights:
        found["bias"] = weights["cls.predictions.bias"]
    return {name: np.ascontiguousarray(array, np.float32) for name, array in found.items()}


def flat(tokenizer, texts, tokens):
    """Token numbers of all texts in one row, with the special tokens, and how many each has."""
    tokenizer.enable_truncation(tokens)
    rows = [row.ids for row in tokenizer.encode_batch(texts)]
    return np.concatenate([np.array(row, np.uint16) for row in rows]), np.array([len(row) for row in rows], np.uint16)


def words_of_kind(passages, queries):
    """Counts of stemmed words: of a text those of `columns` from one of `starts` to the next. The most frequent words have a column
    each, the others share as many."""
    bm25 = Bm25(passages)
    asked = bm25.queries(queries)
    given = bm25.counts
    order = np.argsort(-np.bincount(given.indices, minlength=given.shape[1]), kind="stable")
    column = np.empty(len(order), int)
    column[order] = np.arange(len(order))
    column = np.where(column < STEMS, column, STEMS + column % STEMS)
    found = {}
    for part, rows in (("passages", given), ("queries", asked)):
        found |= {f"{part} columns": column[rows.indices].astype(np.uint16), f"{part} starts": rows.indptr.astype(np.int32),
                  f"{part} counts": rows.data.clip(0, 255).astype(np.uint8)}
    return found


def texts_of(work, tokenizer, every=1):
    """The training texts by kind; of a sample only one of so many passages, with its queries."""
    texts, found = json.loads((work / "texts.json").read_text()), {}
    for kind in ("prose", "wordnet"):
        numbers = [at for at, row in enumerate(texts["passages"]) if (row["source"] == "wordnet") == (kind == "wordnet")][::every]
        place = {number: at for at, number in enumerate(numbers)}
        questions = [row for row in texts["queries"] if row["passage"] < 0 and kind == "prose"][::every]
        queries = questions + [row for row in texts["queries"] if row["passage"] in place]
        named = {"passages": ([texts["passages"][at]["text"] for at in numbers], LONGEST[kind]),
                 "queries": ([row["text"] for row in queries], QUERY_TOKENS + 2)}
        for part, (some, tokens) in named.items():
            found[f"{kind} {part} ids"], found[f"{kind} {part} lengths"] = flat(tokenizer, some, tokens)
        found.update({f"{kind} {name}": array for name, array in words_of_kind(*(some for some, _ in named.values())).items()})
        found[f"{kind} positive"] = np.array([place.get(row["passage"], -1) for row in queries], np.int32)
        found[f"{kind} question"] = np.array([row["kind"] == "question" for row in queries])
    return found


def sets_of(work, collections, scifact, tokenizer):
    wanted = {**{f"dev-{name}": (work / "dev" / name, DEV_TOKENS) for name in DEV}, "judged-scifact": (scifact, JUDGED_TOKENS),
              **{f"judged-{name}": (collections / name, JUDGED_TOKENS) for name in JUDGED}}
    found = {}
    for name, (folder, tokens) in wanted.items():
        documents, queries, grades = collection(folder, "qrels.test.tsv")
        found[f"{name} documents ids"], found[f"{name} documents lengths"] = flat(tokenizer, documents, tokens)
        found[f"{name} queries ids"], found[f"{name} queries lengths"] = flat(tokenizer, queries, tokens)
        found[f"{name} grades"] = np.array([(query, document, grade) for query, row in enumerate(grades) for document, grade in row.items()])
    return found


def packed(path, arrays):
    plain = io.BytesIO()
    np.savez(plain, **arrays)
    path.write_bytes(lzma.compress(plain.getvalue(), preset=6))
    return f"{path.name} {path.stat().st_size}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    for name in ("collections", "scifact", "bge", "e5"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    arguments = parser.parse_args()
    out = arguments.work / "bundle"
    out.mkdir(exist_ok=True)
    tokenizer = truncating_tokenizer((SPARSE / "tokenizer.json").read_text())
    vocabulary = tokenizer.get_vocab()
    for folder in (DENSE, arguments.bge, arguments.e5):
        assert truncating_tokenizer((folder / "tokenizer.json").read_text()).get_vocab() == vocabulary, folder
    names = [name for name, _ in sorted(vocabulary.items(), key=lambda row: row[1])]
    (out / "vocabulary.json").write_text(json.dumps(names))
    models = {"bge": load_file(arguments.bge / "model.safetensors"), "e5": load_file(arguments.e5 / "model.safetensors"),
              "minilm": package_weights(DENSE)}
    archives = {name: in_bytes(renamed(weights)) for name, weights in models.items()}
    archives["tiny"] = {name: array.astype(np.float16) if array.ndim == 2 else array
                        for name, array in renamed(package_weights(SPARSE)).items()}
    archives["texts"], archives["sample"] = texts_of(arguments.work, tokenizer), texts_of(arguments.work, tokenizer, SAMPLE)
    archives["sets"] = sets_of(arguments.work, arguments.collections, arguments.scifact, tokenizer)
    with ProcessPoolExecutor(2) as pool:
        for line in pool.map(packed, [out / f"{name}.xz" for name in archives], archives.values()):
            print(line, flush=True)


if __name__ == "__main__":
    main()
