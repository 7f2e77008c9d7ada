#!/usr/bin/env python3
"""sparse_engines.py ENGINE DOCS.csr QUERIES.csr TRUTH WORK [--questions N] [--passes N] [--depth N] [--rows N]

Top ten of sparse vectors in seismic, bmp or pisa: one thread, one question at a time. TRUTH.ids and TRUTH.scores are the exact answers,
`depth` a question. Prints a JSON object for the index and for each setting that is measured; the ids of a setting's answers go to the
file that it names. `mean` of a `batch` is that of one call with all questions, which has no cost of calls from Python in it."""
import argparse
import glob
import importlib.util
import os
import sys
import time

import numpy as np

from timing import K, Rows, percentiles, say, timed

# Settings that Seismic's authors publish for SPLADE on MS MARCO, 8.8 million passages: those of the table of times in the paper's
# repository (n_postings, centroid_fraction, summary_energy, max_fraction; query_cut and heap_factor with what is said to come out), and those
# of its guide.
SEISMIC = {
    "table": {
        "build": {"n_postings": 4000, "centroid_fraction": 0.1, "summary_energy": 0.4},
        "searches": [(5, 0.8, True), (6, 0.7, True)],
    },
    "guide": {
        "build": {"n_postings": 3000, "centroid_fraction": 0.2, "summary_energy": 0.5, "max_fraction": 6.0},
        "searches": [(10, 0.8, False)],
    },
}
CUTS, FACTORS = (4, 5, 6, 8, 10, 14, 20), (0.6, 0.7, 0.8, 0.9)
RECALLS = (0.95, 0.98)
# Of PISA's algorithms those that are published as its fastest for learned weights.
PISA = ("block_max_maxscore", "maxscore", "block_max_wand")
# Larger weights of a question are not told apart: a term is repeated as often as its weight says.
QUERY_LEVELS, DOCUMENT_LEVELS = 32, 255

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
for name in ("engine", "docs", "queries", "truth", "work"):
    p.add_argument(name)
for name, default in (("questions", None), ("passes", 2), ("depth", 100), ("rows", None)):
    p.add_argument(f"--{name}", type=int, default=default)
a = p.parse_args()
docs, asked = Rows(a.docs, a.rows), list(Rows(a.queries, a.questions))
ids, scores = (
    np.fromfile(f"{a.truth}.{ending}", kind).reshape(-1, a.depth)[: len(asked)]
    for ending, kind in (("ids", np.int32), ("scores", np.float32))
)
os.makedirs(a.work, exist_ok=True)
at = lambda name: os.path.join(a.work, name)


def recall(found):
    """The share of right answers; those that tie with the tenth are right."""
    right = 0
    for mine, best, reached in zip(found, ids, scores):
        exact = dict(zip(best.tolist(), reached.tolist()))
        right += sum(exact.get(doc, 0) >= reached[K - 1] * (1 - 1e-5) for doc in set(mine.tolist()) - {-1})
    return right / (K * len(found))


def levels(values, most, largest):
    return np.maximum(np.rint(values * (most / largest)), 1).astype(int)


def seismic():
    import seismic

    def written(rows, path):
        with open(path, "wb") as file:
            file.write(np.uint32(len(rows)).tobytes())
            for idx, val in rows:
                file.write(np.uint32(len(idx)).tobytes() + idx.tobytes() + val.tobytes())
        return path

    documents, questions = written(docs, at("docs.bin")), written(asked, at("queries.bin"))
    plain = [(idx.astype(np.int32), val) for idx, val in asked]
    for source, given in SEISMIC.items():
        begun = time.perf_counter()
        index = seismic.SeismicIndexRaw.build(documents, **given["build"])
        built = time.perf_counter() - begun
        index.save(at("seismic"))
        say(what="index", source=source, build_s=built, bytes=os.path.getsize(glob.glob(at("seismic") + "*")[0]), **given["build"])

        def search(cut, factor, ordered):
            return lambda q: [doc for _, doc in index.search(q[0], q[1], K, cut, factor, 0, ordered)]

        def batch(cut, factor, ordered):
            begun = time.perf_counter()
            index.batch_search(questions, K, cut, factor, 0, ordered, num_threads=1)
            return (time.perf_counter() - begun) / len(asked) * 1e3

        tried = []
        for ordered in (True, False):
            for cut in CUTS:
                for factor in FACTORS:
                    reached = recall(timed(search(cut, factor, ordered), plain, 0)["ids"])
                    tried.append(((cut, factor, ordered), reached, batch(cut, factor, ordered)))
        best = max(reached for _, reached, _ in tried)
        chosen = {setting: f"published {setting[0]}/{setting[1]}" for setting in given["searches"]}
        for least in RECALLS:
            enough = [one for one in tried if one[1] >= min(least, best)]
            chosen.setdefault(min(enough, key=lambda one: one[2])[0], f"fastest of {min(least, best):.2f}")
        for n, (setting, why) in enumerate(chosen.items()):
            out = at(f"{source}-{n}.ids")
            found = timed(search(*setting), plain, a.passes, out)
            means = [batch(*setting) for _ in range(a.passes + 1)]
            cut, factor, ordered = setting
            settings = {"query_cut": cut, "heap_factor": factor, "sorted": ordered}
            say(what="search", source=source, why=why, settings=settings, batch=min(means), answers=out, **found)


def bmp():
    import bmp

    largest = docs.val.max()
    begun = time.perf_counter()
    indexer = bmp.Indexer(at("bmp"), bsize=8, compress_range=False)
    for number, (idx, val) in enumerate(docs):
        indexer.add_document(str(number), dict(zip(map(str, idx.tolist()), levels(val, DOCUMENT_LEVELS, largest).tolist())))
    indexer.finish()
    say(what="index", build_s=time.perf_counter() - begun, bytes=os.path.getsize(at("bmp")), bsize=8)
    searcher = bmp.Searcher(at("bmp"))
    questions = [
        {str(term): float(weight) for term, weight in zip(idx.tolist(), levels(val, QUERY_LEVELS, val.max()).tolist())}
        for idx, val in asked
    ]
    out = at("bmp.ids")
    found = timed(lambda q: [int(doc) for doc in searcher.search(q, k=K, alpha=1.0, beta=1.0)[0]], questions, a.passes, out)
    say(what="search", why="exact for weights of 8 bits", settings={"alpha": 1.0, "beta": 1.0}, answers=out, **found)


class Timed:
    """Questions for PISA, which takes them from a list one after another: when each is taken, the one before has been answered."""

    def __init__(self, questions):
        self.questions, self.taken = questions, []

    def __len__(self):
        return len(self.questions)

    def __iter__(self):
        for question in enumerate(self.questions):
            self.taken.append(time.perf_counter())
            yield question
        self.taken.append(time.perf_counter())


def pisathon():
    """PISA's library alone: the package around it wants a JVM."""
    import ctypes

    ctypes.CDLL(glob.glob(os.path.join(sys.prefix, "lib", "libtbb.so.2"))[0], mode=ctypes.RTLD_GLOBAL)
    package = os.path.dirname(importlib.util.find_spec("pyterrier_pisa").origin)
    spec = importlib.util.spec_from_file_location("_pisathon", glob.glob(os.path.join(package, "_pisathon*.so"))[0])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pisa():
    engine = pisathon()
    begun = time.perf_counter()
    weights = levels(docs.val, DOCUMENT_LEVELS, docs.val.max())
    of = np.repeat(np.arange(len(docs)), np.diff(docs.ptr))
    # Names in the order of their bytes, which is that of numbers of one width.
    order = np.argsort(docs.idx, kind="stable")
    terms, lengths = np.unique(docs.idx, return_counts=True)
    ends = np.cumsum(lengths)
    names = {name: [f"{n:09d}" for n in numbers] for name, numbers in (("documents", range(len(docs))), ("terms", terms.tolist()))}
    with open(at("inv.docs"), "wb") as by_doc, open(at("inv.freqs"), "wb") as by_weight, open(at("inv.sizes"), "wb") as sizes:
        by_doc.write(np.array([1, len(docs)], "<u4").tobytes())
        for end, length in zip(ends, lengths):
            part = order[end - length : end]
            by_doc.write(np.concatenate(([length], of[part])).astype("<u4").tobytes())
            by_weight.write(np.concatenate(([length], weights[part])).astype("<u4").tobytes())
        sums = np.add.reduceat(weights, docs.ptr[:-1]) if len(docs) else []
        sizes.write(np.concatenate(([len(docs)], sums)).astype("<u4").tobytes())
    for name, lines in names.items():
        with open(at(f"fwd.{name}"), "w") as file:
            file.writelines(f"{line}\n" for line in lines)
        engine.build_binlex(at(f"fwd.{name}"), at(f"fwd.{'doc' if name == 'documents' else 'term'}lex"))
    context = engine.RetrievalContext()
    engine.prepare_index(context, a.work, "block_simdbp", "quantized", "", block_size=32)
    built = time.perf_counter() - begun
    size = sum(os.path.getsize(file) for file in glob.glob(at("*")) if "simdbp" in file or "bmw" in file)
    say(what="index", build_s=built, bytes=size, encoding="block_simdbp", block_size=32)
    questions = [
        {f"{term:09d}": float(weight) for term, weight in zip(idx.tolist(), levels(val, QUERY_LEVELS, val.max()).tolist())}
        for idx, val in asked
    ]
    buffer = lambda kind: np.empty(len(questions) * K, kind)
    for algorithm in PISA:
        best, out = np.full(len(questions), np.inf), at(f"{algorithm}.ids")
        for _ in range(a.passes + 1):
            of_question, found, ranks, reached = (buffer(kind) for kind in (np.int32, object, np.int32, np.float32))
            source = Timed(questions)
            count = engine.retrieve(
                context, algorithm, source, k=K, threads=1, pretokenised=1, query_weighted=1,
                result_qidxs=of_question, result_docnos=found, result_ranks=ranks, result_scores=reached,
            )
            best = np.minimum(best, np.diff(source.taken))
        answers = np.full((len(questions), K), -1, np.int32)
        answers[of_question[:count], ranks[:count]] = [int(doc) for doc in found[:count]]
        answers.tofile(out)
        say(what="search", why="exact for weights of 8 bits", settings={"algorithm": algorithm}, answers=out, **percentiles(best * 1e3))


{"seismic": seismic, "bmp": bmp, "pisa": pisa}[a.engine]()
