"""The cheapest student: a factor and an offset for each term, everything else as it is. See train_student.py for the other.

    python reweight_student.py WORK DATA COLLECTIONS [--steps 300] [--parts scale bias] [--export DIR]

It starts from the published checkpoint, so the server that judge_student.py asked must have had that model (`build_models.py
--published-sparse`), not the one that was adopted since.

A term's logit z becomes `factor · z + offset`. The logits of the terms that a text has come from the published model's own weights
(`z = exp(weight) - 1`), which `student_teachers.py` and `judge_student.py` stored in WORK, so no text is encoded again: neither to
train nor to judge. An offset is never positive: it would give texts terms whose logits are not stored.

A factor needs a decoder of its own, because the published model's is also its word embeddings; an offset is a change of the
decoder's bias alone.
"""

import argparse
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy import sparse
from tokenizers import Tokenizer

from build_models import WORD_EMBEDDINGS, sparse_checkpoint, write_sparse
from judge_student import collections_of, report
from student_batches import SEED, Batches
from student_model import divergence
from student_teachers import KINDS, newest_pool
from student_texts import ROOT

TERMS = 4096
QUERIES = 64
HELD_OUT = 256


def changed(weights, factors, offsets):
    """Term weights after a change of the logits they are from."""
    logits = jnp.expm1(weights)
    return jnp.where(weights > 0, jnp.log1p(jax.nn.relu(factors * logits + offsets)), 0)


def applied(rows, parameters):
    """The same for sparse rows, without what has become zero."""
    rows = rows.copy()
    columns = rows.indices
    rows.data = np.array(changed(rows.data, np.exp(parameters["scale"])[columns], np.minimum(parameters["bias"], 0)[columns]))
    rows.eliminate_zeros()
    return rows


def export(package, parameters):
    """Writes the model's files, with a decoder of its own beside the word embeddings."""
    weights, config, tokenizer_text, _ = sparse_checkpoint()
    factors, offsets = np.exp(parameters["scale"]), np.minimum(parameters["bias"], 0)
    decoder = factors[:, None] * weights[WORD_EMBEDDINGS]
    bias = factors * weights["cls.predictions.bias"] + offsets
    own = {"cls.predictions.decoder.weight": decoder.astype(np.float32), "cls.predictions.bias": bias.astype(np.float32)}
    write_sparse(package, {**weights, **own}, config, tokenizer_text)


def main():
    parser = argparse.ArgumentParser()
    for name in ("work", "data", "collections"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rate", type=float, default=0.02)
    parser.add_argument("--parts", nargs="*", choices=("scale", "bias"), default=["scale", "bias"])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--export", type=Path, help="a folder for the model's files")
    arguments = parser.parse_args()
    tokenizer = Tokenizer.from_file(str(ROOT / "packages" / "model-splade-tiny" / "tokenizer.json"))
    vocabulary = tokenizer.get_vocab_size()
    batches = {kind: Batches(arguments.work, kind, newest_pool(arguments.work)) for kind in KINDS}
    random = np.random.default_rng(SEED)

    def batch_of(of_kind, random, queries):
        drawn = of_kind.draw(random, queries)
        asked, given = (of_kind.pool.vectors[part, "embedded"][rows] for part, rows in (("queries", queries), ("passages", drawn["rows"])))
        # A passage's terms that no query has change no score; they count for the number of terms only.
        often = np.bincount(given.indices, minlength=vocabulary) + 1e6 * np.bincount(asked.indices, minlength=vocabulary)
        terms = np.argsort(-often, kind="stable")[:TERMS].astype(np.int32)
        return {"queries": asked[:, terms].toarray(), "passages": given[:, terms].toarray(), "terms": terms, "target": drawn["target"]}

    held = []
    for of_kind in batches.values():
        numbers = np.random.default_rng(SEED).permutation(of_kind.held)[:HELD_OUT]
        held += [batch_of(of_kind, np.random.default_rng(SEED), numbers[first:first + QUERIES])
                 for first in range(0, len(numbers), QUERIES)]

    def vectors(parameters, batch):
        factors, offsets = jnp.exp(parameters["scale"])[batch["terms"]], jnp.minimum(parameters["bias"], 0)[batch["terms"]]
        return changed(batch["queries"], factors, offsets), changed(batch["passages"], factors, offsets)

    def loss(trainable, fixed, scale, batch, penalty):
        queries, passages = vectors({**fixed, **trainable}, batch)
        # The mean number of postings that a query touches, with weights for counts.
        touched = (queries.mean(0) * passages.mean(0)).sum()
        return divergence(scale * queries @ passages.T, batch["target"]) + penalty * touched

    start = {part: jnp.zeros(vocabulary) for part in ("scale", "bias")}
    whole = jax.jit(lambda parameters, batch: (lambda q, p: q @ p.T)(*vectors(parameters, batch)))
    far = lambda parameters, scale: float(np.mean([divergence(scale * whole(parameters, batch), batch["target"]) for batch in held]))
    scales = np.arange(0.1, 1.5, 0.1)
    scale = float(scales[int(np.argmin([far(start, value) for value in scales]))])
    print(f"scale {scale:.1f}, divergence on held-out queries before {far(start, scale):.4f}", flush=True)

    trainable = {part: start[part] for part in arguments.parts}
    fixed = {part: start[part] for part in start if part not in arguments.parts}
    optimiser = optax.adam(optax.cosine_decay_schedule(arguments.rate, arguments.steps))
    state = optimiser.init(trainable)

    @jax.jit
    def step(trainable, state, batch, penalty):
        value, gradients = jax.value_and_grad(loss)(trainable, fixed, scale, batch, penalty)
        updates, state = optimiser.update(gradients, state)
        return optax.apply_updates(trainable, updates), state, value

    started = time.process_time()
    for number in range(1, arguments.steps + 1):
        kind = "prose" if random.random() < 0.6 else "wordnet"
        batch = batch_of(batches[kind], random, random.choice(batches[kind].trained, QUERIES, False))
        trainable, state, value = step(trainable, state, batch, 1e-3)
        if number % 50 == 0:
            print(f"{number}: {time.process_time() - started:.0f} CPU-s, loss {value:.4f}, "
                  f"held out {far({**fixed, **trainable}, scale):.4f}", flush=True)
    parameters = {name: np.asarray(values) for name, values in {**fixed, **trainable}.items()}
    name = "-".join(["reweighted", *arguments.parts])
    np.savez(arguments.work / f"{name}.npz", **parameters)

    if arguments.export:
        export(arguments.export, parameters)

    stored = lambda collection, part: sparse.load_npz(arguments.work / "judged" / f"embedded-{collection}-{part}.npz")
    report(collections_of(arguments.data, arguments.collections, arguments.quick),
           {"embedded": lambda collection, part, texts: stored(collection, part),
            name: lambda collection, part, texts: applied(stored(collection, part), parameters)}, vocabulary)


if __name__ == "__main__":
    main()
