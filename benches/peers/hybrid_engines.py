#!/usr/bin/env python3
"""hybrid_engines.py WORDS.json DOCS.csr QUERIES.csr VECTORS.f32 QUERIES.f32 WORK --rows N --questions N [--passes N]

One question by words, sparse and dense vectors, put together of bm25s, Seismic and hnswlib in one process: a hundred hits of each, fused by
reciprocal ranks. Words and vectors of a question are given. Prints one JSON object."""
import argparse
import json
import os
import time

import bm25s
import hnswlib
import numpy as np
import seismic

from timing import K, Rows, say, timed

WINDOW, CONSTANT, WIDTH = 100, 5, 150
p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
for name in ("words", "docs", "queries", "vectors", "asked", "work"):
    p.add_argument(name)
for name, default in (("rows", None), ("questions", None), ("passes", 2), ("dims", 384)):
    p.add_argument(f"--{name}", type=int, default=default)
a = p.parse_args()
with open(a.words) as file:
    given = json.load(file)
floats = lambda path, count: np.fromfile(path, "<f4", count * a.dims).reshape(-1, a.dims)

begun = time.perf_counter()
words = bm25s.BM25(method="lucene", k1=1.2, b=0.75, backend="numba")
words.index([text.split() for text in given["texts"][: a.rows]], show_progress=False)
path = os.path.join(a.work, "hybrid.bin")
docs = Rows(a.docs, a.rows)
with open(path, "wb") as file:
    file.write(np.uint32(len(docs)).tobytes())
    for idx, val in docs:
        file.write(np.uint32(len(idx)).tobytes() + idx.tobytes() + val.tobytes())
sparse = seismic.SeismicIndexRaw.build(path, n_postings=4000, centroid_fraction=0.1, summary_energy=0.4)
dense = hnswlib.Index("ip", a.dims)
dense.init_index(a.rows, M=16, ef_construction=200)
dense.add_items(floats(a.vectors, a.rows), num_threads=1)
dense.set_ef(WIDTH)
dense.set_num_threads(1)
built = time.perf_counter() - begun


def search(question):
    terms, (idx, val), vector = question
    known = [term for term in terms if term in words.vocab_dict]
    lists = [
        words.retrieve([known], k=WINDOW, show_progress=False, n_threads=1)[0][0].tolist() if known else [],
        [doc for _, doc in sparse.search(idx, val, WINDOW, 10, 0.8, 0, True)],
        dense.knn_query(vector, WINDOW, num_threads=1)[0][0].tolist(),
    ]
    fused = {}
    for ranked in lists:
        for rank, doc in enumerate(ranked):
            fused[doc] = fused.get(doc, 0.0) + 1 / (CONSTANT + rank + 1)
    return sorted(fused, key=fused.get, reverse=True)[:K]


asked = Rows(a.queries, a.questions)
vectors = floats(a.asked, len(asked))
questions = [
    (text.split(), (idx.astype(np.int32), val), vector)
    for text, (idx, val), vector in zip(given["questions"], asked, vectors)
]
say(build_s=built, **timed(search, questions, a.passes))
