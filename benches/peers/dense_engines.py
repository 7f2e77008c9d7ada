#!/usr/bin/env python3
"""dense_engines.py VECTORS.f32 QUERIES.f32 [--dims 384] [--count N] [--questions 500] [--m 16] [--ef-construction 200] [--engines …]

hnswlib, FAISS (HNSW, its int8 form, and an exact scan) and usearch on the same vectors: inner product, one thread, one question at a time,
top 10, recall against an exact scan. Rows of little-endian float32. Prints a JSON object for each index and each width of a search; says
so of what is not installed."""
import argparse
import importlib
import json
import time

import numpy as np

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("vectors")
p.add_argument("queries")
for name, default in (("dims", 384), ("count", None), ("questions", 500), ("m", 16), ("ef-construction", 200)):
    p.add_argument(f"--{name}", type=int, default=default)
p.add_argument("--widths", default="10,20,50,100,200,400")
p.add_argument("--engines", default="hnswlib,faiss,usearch")
a = p.parse_args()
rows = lambda path, count: np.ascontiguousarray(np.fromfile(path, "<f4").reshape(-1, a.dims)[:count])
X, Q = rows(a.vectors, a.count), rows(a.queries, a.questions)
K, ROUNDS, widths = 10, 3, [int(width) for width in a.widths.split(",")]
truth = [set(np.argpartition(-(X @ q), K)[:K].tolist()) for q in Q]


def library(name):
    if name.split(".")[0] not in a.engines.split(","):
        return None
    try:
        return importlib.import_module(name)
    except ImportError:
        print(json.dumps({"engine": name, "skipped": "not installed"}), flush=True)


def timed(engine, search, **more):
    best, found = np.full(len(Q), np.inf), None
    for _ in range(ROUNDS):
        found = []
        for at, q in enumerate(Q):
            begun = time.perf_counter()
            ids = search(q)
            best[at] = min(best[at], time.perf_counter() - begun)
            found.append(ids)
    recall = float(np.mean([len(t & set(int(i) for i in ids)) / K for t, ids in zip(truth, found)]))
    ms = lambda share: round(float(np.quantile(best, share)) * 1e3, 4)
    print(json.dumps({"engine": engine, **more, "recall": round(recall, 4), "p50_ms": ms(0.5), "p95_ms": ms(0.95)}), flush=True)


def built(engine, make):
    begun = time.perf_counter()
    index = make()
    print(json.dumps({"engine": engine, "vectors": len(X), "build_s": round(time.perf_counter() - begun, 2)}), flush=True)
    return index


if hnswlib := library("hnswlib"):

    def make():
        index = hnswlib.Index("ip", a.dims)
        index.init_index(len(X), M=a.m, ef_construction=a.ef_construction)
        index.add_items(X, num_threads=1)
        return index

    index = built("hnswlib", make)
    index.set_num_threads(1)
    for width in widths:
        index.set_ef(max(width, K))
        timed("hnswlib", lambda q: index.knn_query(q, K, num_threads=1)[0][0], width=width)

if faiss := library("faiss"):
    faiss.omp_set_num_threads(1)

    def graph(quantized):
        def make():
            kind = faiss.METRIC_INNER_PRODUCT
            codes = faiss.ScalarQuantizer.QT_8bit
            index = faiss.IndexHNSWSQ(a.dims, codes, a.m, kind) if quantized else faiss.IndexHNSWFlat(a.dims, a.m, kind)
            index.hnsw.efConstruction = a.ef_construction
            if quantized:
                index.train(X)
            index.add(X)
            return index

        return make

    for engine, quantized in (("faiss hnsw", False), ("faiss hnsw int8", True)):
        index = built(engine, graph(quantized))
        for width in widths:
            index.hnsw.efSearch = width
            timed(engine, lambda q: index.search(q[None], K)[1][0], width=width)
    flat = faiss.IndexFlatIP(a.dims)
    flat.add(X)
    timed("faiss exact", lambda q: flat.search(q[None], K)[1][0], bytes=X.nbytes)

if usearch := library("usearch.index"):

    def make():
        index = usearch.Index(ndim=a.dims, metric="ip", dtype="f32", connectivity=a.m, expansion_add=a.ef_construction)
        index.add(np.arange(len(X)), X, threads=1)
        return index

    index = built("usearch", make)
    for width in widths:
        index.expansion_search = width
        timed("usearch", lambda q: index.search(q, K, threads=1).keys, width=width)
