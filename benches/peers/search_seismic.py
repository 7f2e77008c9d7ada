#!/usr/bin/env python3
"""search_seismic.py PEERS INDEX QUERIES.npz TRUTH RESULT --cut N --factor F --knn N [--questions N] [--passes 2]
Times one setting of a Seismic index, one call a question, on one thread; `sweep` of bench_seismic.py in the peers' folder found it.
TRUTH is TRUTH.ids/.scores, 100 a question. Writes RESULT.ids and RESULT.scores; prints one JSON object. `batch_mean` is the mean
of the batch call, which has no cost of Python calls in it."""
import argparse, glob, json, os, sys, time
import numpy as np

p = argparse.ArgumentParser()
for name in ("peers", "index", "queries", "truth", "result"):
    p.add_argument(name)
p.add_argument("--cut", type=int, required=True)
p.add_argument("--factor", type=float, required=True)
p.add_argument("--knn", type=int, required=True)
p.add_argument("--questions", type=int)
p.add_argument("--passes", type=int, default=2)
a = p.parse_args()
sys.path.insert(0, os.path.join(a.peers, "sparse"))
import seismic  # noqa: E402
from common import K, accuracy, load_csr, rows, stats, time_queries  # noqa: E402

queries = load_csr(a.queries, a.questions)
index = seismic.SeismicIndexRaw.load(a.index)
if a.knn:
    index.load_knn(glob.glob(a.index + ".knn*")[0])
q = [(i.astype(np.int32), w) for i, w in rows(queries)]


def search(x):
    found = index.search(x[0], x[1], K, a.cut, a.factor, a.knn, True)
    return [d for _, d in found], [s for s, _ in found]


ms, ids, scores = time_queries(search, q, reps=a.passes)
binary = a.result + ".queries"
with open(binary, "wb") as f:
    f.write(np.uint32(queries.shape[0]).tobytes())
    for i, w in q:
        f.write(np.uint32(len(i)).tobytes() + i.astype("<u4").tobytes() + w.astype("<f4").tobytes())
batch = []
for _ in range(a.passes + 1):
    t = time.perf_counter()
    index.batch_search(binary, K, a.cut, a.factor, a.knn, True, num_threads=1)
    batch.append((time.perf_counter() - t) / len(q) * 1e3)
ids.tofile(a.result + ".ids")
scores.tofile(a.result + ".scores")
truth = [np.fromfile(f"{a.truth}.{e}", t).reshape(-1, 100)[: len(q)] for e, t in (("ids", np.int32), ("scores", np.float32))]
s = stats(ms)
print(json.dumps({"mean": s["mean_ms"], "p50": s["p50_ms"], "p95": s["p95_ms"], "batch_mean": min(batch),
                  "recall": accuracy(ids, scores, *truth)["recall@10"]}))
