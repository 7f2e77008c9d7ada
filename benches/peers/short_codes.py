#!/usr/bin/env python3
"""short_codes.py VECTORS.f32 QUERIES.f32 [--count N] [--questions N] [--m 16] [--ef-construction 200] [--widths 50,100]

FAISS's graphs over codes of one bit (RaBitQ, questions of 4 bits), whose candidates are compared by floats, as those of `bbq_hnsw` are:
one thread, one question at a time, top 10, recall against an exact scan. Vectors have length one, so distances rank as products do.
Prints lines like those of dense_engines.py."""

import argparse
import importlib.util
import json
import time

import numpy as np

DIMS, K, ROUNDS = 384, 10, 3
ENGINE = "faiss hnsw rabitq"


def rows(path, count):
    return np.ascontiguousarray(np.fromfile(path, "<f4").reshape(-1, DIMS)[:count])


def say(**line):
    print(json.dumps({"engine": ENGINE, **line}), flush=True)


def measure(search, questions, truth):
    """Recall, and percentiles of the shortest time of each question in milliseconds."""
    best, found = np.full(len(questions), np.inf), []
    for _ in range(ROUNDS):
        found = []
        for at, question in enumerate(questions):
            begun = time.perf_counter()
            found.append(search(question))
            best[at] = min(best[at], time.perf_counter() - begun)
    recall = np.mean([len(wanted & set(ids.tolist())) / K for wanted, ids in zip(truth, found)])
    p50, p95 = (round(float(np.quantile(best, share)) * 1e3, 4) for share in (0.5, 0.95))
    return {"recall": round(float(recall), 4), "p50_ms": p50, "p95_ms": p95}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("vectors")
    parser.add_argument("queries")
    for name, default in (("count", None), ("questions", 500), ("m", 16), ("ef-construction", 200)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--widths", default="10,20,50,100,200,400")
    given = parser.parse_args()
    if importlib.util.find_spec("faiss") is None:
        say(skipped="not installed")
        return
    import faiss

    faiss.omp_set_num_threads(1)
    vectors, questions = rows(given.vectors, given.count), rows(given.queries, given.questions)
    truth = [set(np.argpartition(-(vectors @ question), K)[:K].tolist()) for question in questions]
    index = faiss.IndexHNSWRaBitQ(DIMS, given.m, 1)
    index.hnsw.efConstruction = given.ef_construction
    begun = time.perf_counter()
    index.train(vectors)
    index.add(vectors)
    say(vectors=len(vectors), build_s=round(time.perf_counter() - begun, 2))
    floats = faiss.IndexFlatL2(DIMS)
    floats.add(vectors)
    refined = faiss.IndexRefine(index, floats)
    for width in (int(width) for width in given.widths.split(",")):
        walk = faiss.SearchParametersHNSW(efSearch=width)
        asked = faiss.IndexRefineSearchParameters(k_factor=width / K, base_index_params=walk)
        say(width=width, **measure(lambda question: refined.search(question[None], K, params=asked)[1][0], questions, truth))


main()
