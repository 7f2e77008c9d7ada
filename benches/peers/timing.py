"""What the Python launchers of benches/quick-peers share: matrices of benches/lib/csr.mjs, and the timing of questions one by one."""
import json
import time

import numpy as np

K = 10


class Rows:
    """The first rows of a matrix: `row(n)` gives columns and values."""

    def __init__(self, path, count=None):
        rows, self.columns, entries = (int(n) for n in np.fromfile(path, "<u8", 3))
        read = lambda kind, at, length: np.fromfile(path, kind, length, offset=at)
        count = min(rows, count or rows)
        self.ptr = read("<u8", 24, count + 1).astype(np.int64)
        columns = 24 + 8 * (rows + 1)
        self.idx = read("<u4", columns, self.ptr[-1])
        self.val = read("<f4", columns + 4 * entries, self.ptr[-1])

    def __len__(self):
        return len(self.ptr) - 1

    def row(self, n):
        part = slice(self.ptr[n], self.ptr[n + 1])
        return self.idx[part], self.val[part]

    def __iter__(self):
        return (self.row(n) for n in range(len(self)))


def percentiles(milliseconds):
    p50, p95 = np.percentile(milliseconds, [50, 95])
    return {"mean": float(np.mean(milliseconds)), "p50": float(p50), "p95": float(p95)}


def timed(search, questions, passes, out=None):
    """Asks all questions one by one, once to warm up; the best time of each counts. `search` gives ids, best first; they go to `out`."""
    ids = np.full((len(questions), K), -1, np.int32)
    for at, question in enumerate(questions):
        found = search(question)[:K]
        ids[at, : len(found)] = found
    best = np.full(len(questions), np.inf)
    for _ in range(passes):
        for at, question in enumerate(questions):
            begun = time.perf_counter()
            search(question)
            best[at] = min(best[at], time.perf_counter() - begun)
    if out is not None:
        ids.tofile(out)
    return {**(percentiles(best * 1e3) if passes else {}), "ids": ids}


def say(**line):
    print(json.dumps({name: value for name, value in line.items() if not isinstance(value, np.ndarray)}), flush=True)
