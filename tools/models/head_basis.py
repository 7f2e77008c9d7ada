"""Writes `head-basis.safetensors`, the basis in which Sparrow's SPLADE head looks at few dimensions first.

    .venv/bin/python head_basis.py MODEL PASSAGES QUESTIONS

MODEL is a sparse package, with `model.safetensors`, `config.json` and `tokenizer.json`, or a head on the embedded dense model; PASSAGES and QUESTIONS are JSON lines (may be gzipped) with a `text` each. 1,200 passages and 2,000 questions are taken from all over the
files, beyond the first 10,000 and 5,000 lines, which the benchmarks use. Only means, covariances and counts of their hidden
states are used; nothing of the texts is in the file. The head's results do not depend on the file (the proof is in
`crates/encoder/src/head/mod.rs`), only its speed does.

The basis is balanced: the truncation that loses least of `w·h`, for terms w and hidden states h of given covariances, keeps the
directions in which both are large together (B. Moore, "Principal component analysis in linear systems", 1981). In it both
covariances are the same diagonal matrix, its entries falling. For each term, `looks` is the number of dimensions that costs
least: those of the first look, and `PAIR_COST` for each pair that it lets through.
"""

import gzip
import json
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from build_models import WORD_EMBEDDINGS, package_weights, session_of, write_checksums

# Of the hidden states' covariance, so that no direction is too short to be turned back.
REGULARISATION = 1e-2
# Share of the passages in the mean, the covariance and the costs; questions are the rest.
PASSAGES = 0.8
# What a look at a single pair costs, in dimensions of a pair that is looked at with all others (measured with AVX-512: 2,500 to
# 5,000, most of it memory).
PAIR_COST = 2500
# The bounds of logits that quantisation adds, about.
MARGIN = 0.3
STEP = 8


def texts(path, skip, count):
    opened = gzip.open(path, "rt") if path.suffix == ".gz" else open(path)
    with opened as lines:
        found = [json.loads(line)["text"] for line in lines][skip:]
    return found[:: max(1, len(found) // count)][:count]


def hidden_states(model, texts):
    session, tokenizer = session_of(model)
    found = []
    for text in texts:
        ids = np.array([tokenizer.encode(text).ids], np.int64)
        found.append(session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0][0])
    return np.concatenate(found).astype(np.float64)


def balanced(terms, tokens):
    """`(P, Q)` with `PᵀQ = 1`: both covariances become one diagonal matrix, the largest entries first."""
    tokens = tokens + REGULARISATION * np.trace(tokens) / len(tokens) * np.eye(len(tokens))
    left, right = np.linalg.cholesky(terms), np.linalg.cholesky(tokens)
    u, values, v = np.linalg.svd(left.T @ right)
    root = np.sqrt(values)[:, None]
    return root * (u.T @ np.linalg.inv(left)), root * (v @ np.linalg.inv(right))


def alive(terms, bias, tokens, dims):
    """The share of tokens that the first look at `dims` dimensions lets through, by term."""
    cut = lambda rows: np.column_stack([rows[:, : dims - 1], np.linalg.norm(rows[:, dims - 1 :], axis=1)]).astype(np.float32)
    terms, least = cut(terms), (-bias - MARGIN).astype(np.float32)[:, None]
    counts = sum((terms @ cut(some).T > least).sum(1) for some in np.array_split(tokens, max(1, len(tokens) // 500)))
    return counts / len(tokens)


def main(model, passages, questions):
    weights = package_weights(model)
    terms, bias = weights[WORD_EMBEDDINGS].astype(np.float64), weights["cls.predictions.bias"].astype(np.float64)
    states = [hidden_states(model, texts(passages, 10_000, 1200)), hidden_states(model, texts(questions, 5_000, 2000))]
    shares = [PASSAGES, 1 - PASSAGES]
    mean = sum(share * rows.mean(0) for share, rows in zip(shares, states))
    covariance = sum(share * (rows - mean).T @ (rows - mean) / len(rows) for share, rows in zip(shares, states))
    for_terms, for_tokens = balanced(terms.T @ terms / len(terms), covariance)
    offset = -for_tokens @ mean
    turned = terms @ for_terms.T
    turned_states = [rows[::20] @ for_tokens.T + offset for rows in states]
    looks = np.arange(STEP, len(mean) + 1, STEP)
    turned_bias = bias - turned @ offset
    costs = []
    for dims in looks:
        pairs = sum(share * alive(turned, turned_bias, rows, dims) for share, rows in zip(shares, turned_states))
        # A pair that was not seen among so many may still come.
        costs.append(dims + PAIR_COST * (pairs + 1e-5))
    best = looks[np.stack(costs).argmin(0)]
    single = lambda rows: np.ascontiguousarray(rows, np.float32)
    (model / "head-basis.safetensors").write_bytes(save({
        "terms": single(for_terms), "tokens": single(for_tokens), "offset": single(offset),
        "looks": best.astype(np.float16),
    }))
    print(f"{best.mean():.1f} of {len(mean)} dimensions; estimated cost {np.stack(costs).min(0).mean() / len(mean):.2f} of all")
    if (model / "provenance.json").exists():
        provenance = json.loads((model / "provenance.json").read_text())
        provenance.pop("files")
        write_checksums(model, provenance)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
