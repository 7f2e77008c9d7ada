"""Judges sparse models side by side: the last step of a training, see student_gpu.py.

    python judge_student.py DATA COLLECTIONS WORK MODEL… --url URL --key-file FILE [--quick]

DATA has scifact/ and squad/, COLLECTIONS is what benches/fusions/collections.mjs wrote. A MODEL is a folder of the server's
`--models`; the embedded model always comes first, and the others are compared with it. Term weights are the server's own, so what is
judged is what would be shipped; they are kept in WORK/judged under the model's name, so a model that was trained again needs
another name. `--quick` takes the sample of SQuAD's paragraphs that is in COLLECTIONS instead of all.

For each collection: nDCG@10 by term weights alone and fused with BM25 (reciprocal ranks, 60), the difference from the embedded
model with a 95% interval (paired bootstrap over the queries), the terms of a passage and of a query, and the postings that a query
touches: the lengths of its terms' lists.
"""

import argparse
import random
import urllib.error
from pathlib import Path

import numpy as np
from scipy import sparse
from tokenizers import Tokenizer

from student_texts import ROOT, Bm25, Server, json_lines, term_columns

SEED = 7
SQUAD_QUESTIONS = 2000
RESAMPLES = 10_000
DEPTH = 100
EMBEDDED = ".elser-2-elasticsearch"


def collection(folder, judgements, count=None):
    """Documents (identifier, text) and queries (text, grades), the latter drawn by a seed if fewer are wanted."""
    texts = lambda name: {row["_id"]: f"{row.get('title') or ''} {row['text']}".strip() for row in json_lines(folder / name)}
    documents, queries, grades = texts("corpus.jsonl.gz"), texts("queries.jsonl.gz"), {}
    for line in (folder / judgements).read_text().strip().split("\n")[1:]:
        query, document, grade = line.split("\t")
        if float(grade) > 0:
            grades.setdefault(query, {})[document] = float(grade)
    asked = sorted(grades)
    if count and count < len(asked):
        asked = random.Random(SEED).sample(asked, count)
    places = {name: place for place, name in enumerate(documents)}
    wanted = [{places[name]: grade for name, grade in grades[query].items()} for query in asked]
    return list(documents.values()), [queries[query] for query in asked], wanted


def ranked(scores):
    """The best documents of each query, best first; equal ones in the documents' order, those without a score left out."""
    found = []
    for row in scores:
        best = np.argsort(-row, kind="stable")[:DEPTH]
        found.append(best[row[best] > 0])
    return found


def fused(*rankings):
    """Reciprocal rank fusion of several rankings."""
    found = []
    for lists in zip(*rankings):
        scores = {}
        for some in lists:
            for rank, document in enumerate(some):
                scores[document] = scores.get(document, 0) + 1 / (60 + rank + 1)
        found.append(sorted(scores, key=lambda document: (-scores[document], document)))
    return found


def ndcg(ranking, wanted):
    gains = lambda grades: sum((2 ** grade - 1) / np.log2(place + 2) for place, grade in enumerate(grades))
    return np.array([gains([grades.get(document, 0) for document in found[:10]]) / gains(sorted(grades.values())[::-1][:10])
                     for found, grades in zip(ranking, wanted)])


def interval(differences):
    draws = np.random.default_rng(SEED).integers(0, len(differences), (RESAMPLES, len(differences)))
    return np.percentile(differences[draws].mean(1), [2.5, 97.5])


def products(queries, passages):
    return np.concatenate([(queries[first:first + 200] @ passages.T).toarray() for first in range(0, queries.shape[0], 200)])


def endpoint_of(server, model):
    """Makes the model of a folder known to the server, and an endpoint with a name of its own, which is returned."""
    endpoint = f"judged-{model}"
    for path, body in ((f"/_ml/trained_models/{model}", {"location": {"directory": model}}),
                       (f"/_inference/sparse_embedding/{endpoint}", {"service": "elasticsearch", "service_settings": {
                           "model_id": model, "num_allocations": 2, "num_threads": 1}})):
        try:
            server.call(path, body, "PUT")
        except urllib.error.HTTPError as error:
            answer = error.read().decode()
            if "already exists" not in answer:
                raise RuntimeError(answer) from error
    return endpoint


def lowered(rows, offset):
    """Term weights after an offset has been taken from the logits they are from."""
    rows = rows.copy()
    rows.data = np.log1p(np.maximum(np.expm1(rows.data) - offset, 0))
    rows.eliminate_zeros()
    return rows


def collections_of(data, collections, quick):
    """What is judged by, by name: documents, queries and grades."""
    sets = {"scifact": collection(data / "scifact", "qrels.test.tsv")}
    if quick:
        sets["squad-sample"] = collection(collections / "squad", "qrels.test.tsv")
    else:
        sets["squad"] = collection(data / "squad", "qrels.dev.tsv", SQUAD_QUESTIONS)
    for name in ("wordnet-words", "wordnet-examples", "wordnet-related"):
        sets[name] = collection(collections / name, "qrels.test.tsv")
    return sets


def report(sets, models, vocabulary):
    """Prints the tables. A model is a function from a collection's name, `passages` or `queries`, and the texts to term weights."""
    print("| collection | model | nDCG@10 | difference | fused | difference | terms of a passage | of a query | postings touched |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|")
    means = {}
    for name, (documents, queries, wanted) in sets.items():
        bm25 = Bm25(documents)
        words = ranked(products(bm25.queries(queries), bm25.weights))
        print(f"| {name}: {len(documents)} documents, {len(queries)} queries | words | {ndcg(words, wanted).mean():.4f} | | | | | | |")
        before = None
        for model in models:
            passages = models[model](name, "passages", documents)
            asked = models[model](name, "queries", queries)
            alone = ranked(products(asked, passages))
            values = [ndcg(alone, wanted), ndcg(fused(alone, words), wanted)]
            lengths = np.bincount(passages.indices, minlength=vocabulary)
            touched = lengths[asked.indices].sum() / len(queries)
            before = before or values
            cells = []
            for value, old in zip(values, before):
                low, high = interval(value - old)
                cells += [f"{value.mean():.4f}", "" if value is old else f"{(value - old).mean():+.4f} ({low:+.4f} to {high:+.4f})"]
            print(f"| | {model} | {' | '.join(cells)} | {passages.nnz / len(documents):.1f} | {asked.nnz / len(queries):.1f} "
                  f"| {touched:.0f} |", flush=True)
            means.setdefault(model, []).append([values[0].mean(), values[1].mean(), touched])
    for model, rows in means.items():
        alone, both, _ = np.mean(rows, 0)
        share = np.mean([row[2] / old[2] for row, old in zip(rows, means["embedded"])])
        print(f"\n{model}: mean nDCG@10 {alone:.4f}, fused {both:.4f}; postings touched {share:.3f} of the embedded model's")


def main():
    parser = argparse.ArgumentParser()
    for name in ("data", "collections", "work"):
        parser.add_argument(name, type=Path)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--url", default="http://127.0.0.1:9200")
    parser.add_argument("--key-file", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--offsets", type=float, nargs="*", default=[], help="judge each model also with this taken from all its logits")
    arguments = parser.parse_args()
    server = Server(arguments.url, arguments.key_file.read_text().strip())
    columns = term_columns(Tokenizer.from_file(str(ROOT / "packages" / "model-splade-tiny" / "tokenizer.json")))
    endpoints = {"embedded": EMBEDDED, **{model: endpoint_of(server, model) for model in arguments.models}}

    cache = arguments.work / "judged"
    cache.mkdir(parents=True, exist_ok=True)

    def encoded(model, name, texts):
        path = cache / f"{model}-{name}.npz"
        if not path.exists():
            sparse.save_npz(path, server.sparse(endpoints[model], texts, columns))
        return sparse.load_npz(path)

    models = {model: lambda name, part, texts, model=model: encoded(model, f"{name}-{part}", texts) for model in endpoints}
    for offset in arguments.offsets:
        models.update({f"{model} less {offset}": lambda *of, model=model, offset=offset: lowered(models[model](*of), offset)
                       for model in arguments.models})
    report(collections_of(arguments.data, arguments.collections, arguments.quick), models, len(columns))


if __name__ == "__main__":
    main()
