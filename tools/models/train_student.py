"""Trains the embedded sparse model further, as the student of the dense model and of words together.

    python -m venv .venv && .venv/bin/pip install -r student-requirements.txt
    .venv/bin/python student_texts.py DATA WORDNET COLLECTIONS WORK --key-file FILE       # texts and what the teachers say of them
    .venv/bin/python train_student.py WORK OUT [--steps 700] [--train all|upper|bias]     # this file: model folders OUT-STEP
    .venv/bin/python judge_student.py DATA COLLECTIONS WORK MODEL… --key-file FILE        # against the embedded model

A batch is some queries and, for each, the passage it was made from, two that the dense model ranks high, two that BM25 ranks high,
and a random one. Every query is scored against all passages of the batch. The teachers' score is 1.5 times the z-score of the dense
model's cosine and the z-score of BM25; the loss is the Kullback-Leibler divergence of the student's distribution over the passages
from theirs. FLOPS regularisation (Paria and others, 2020) keeps the vectors sparse; its weights are steered during training, so
that passages have no more terms, and queries touch no more postings, than with the embedded model.

A product with all 30,522 terms would take most of the time. A batch therefore looks at 4,096 of them only: all that the embedded
model gives to the batch's queries, those it gives most often to the passages, and random others.

The first line printed is the largest difference of this forward pass from the reference vectors of the embedded model.
"""

import argparse
import json
import time
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy import sparse

from build_models import REFERENCE, TRANSFORM, WORD_EMBEDDINGS, sparse_checkpoint, truncating_tokenizer, write_sparse
from student_texts import Bm25

SEED = 11
TERMS, RANDOM_TERMS = 4096, 800
PASSAGES_OF_QUERY = 6
HARD = 40
QUERY_TOKENS = 32
# Queries in a batch and tokens of its passages, by the kind of text.
SHAPES = {"prose": (32, 96), "wordnet": (64, 32)}
PROSE_SHARE = 0.6
HELD_OUT = 512
DENSE_WEIGHT, TEMPERATURE, LABEL = 1.5, 1.5, 0.2
AIM = 0.97
DECODER_BIAS = "cls.predictions.bias"


# --- the student ------------------------------------------------------------------------------------------------------------

def linear(weights, name, x):
    return x @ weights[name + ".weight"].T + weights[name + ".bias"]


def layer_norm(weights, name, x):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-12) * weights[name + ".gamma"] + weights[name + ".beta"]


def gelu(x):
    return jax.nn.gelu(x, approximate=False)


def hidden(weights, config, ids, mask):
    """Hidden states after the masked-language-model transform, [texts, tokens, width]."""
    base, heads, (texts, tokens) = "bert.embeddings.", config["num_attention_heads"], ids.shape
    x = weights[WORD_EMBEDDINGS][ids] + weights[base + "position_embeddings.weight"][:tokens]
    x = layer_norm(weights, base + "LayerNorm", x + weights[base + "token_type_embeddings.weight"][0])
    width = x.shape[-1]
    bias = (1 - mask[:, None, None, :]) * -10000.0
    for number in range(config["num_hidden_layers"]):
        layer = f"bert.encoder.layer.{number}."
        split = lambda part: linear(weights, f"{layer}attention.self.{part}", x).reshape(texts, tokens, heads, -1)
        scores = jnp.einsum("nqhd,nkhd->nhqk", split("query"), split("key")) / np.sqrt(width / heads) + bias
        context = jnp.einsum("nhqk,nkhd->nqhd", jax.nn.softmax(scores, -1), split("value")).reshape(texts, tokens, width)
        x = layer_norm(weights, layer + "attention.output.LayerNorm", linear(weights, layer + "attention.output.dense", context) + x)
        inner = gelu(linear(weights, layer + "intermediate.dense", x))
        x = layer_norm(weights, layer + "output.LayerNorm", linear(weights, layer + "output.dense", inner) + x)
    return layer_norm(weights, TRANSFORM + "LayerNorm", gelu(linear(weights, TRANSFORM + "dense", x)))


def largest(states, mask, decoder):
    """The largest product of each term over a text's tokens, and the token that has it."""
    def one(text):
        states, mask = text
        logits = jnp.where(mask[:, None] > 0, states @ decoder.T, -1e9)
        best = logits.max(0)
        tokens = jnp.arange(len(states), dtype=jnp.int32)[:, None]
        return best, jnp.where(logits == best, tokens, -1).max(0)

    # A few texts at a time, so that the logits stay in the cache.
    return jax.lax.map(one, (states, mask), batch_size=4)


@jax.custom_vjp
def pooled(states, mask, decoder, bias):
    """Term weights before the logarithm: relu(max over tokens of the logits)."""
    return jax.nn.relu(largest(states, mask, decoder)[0] + bias)


def pooled_forward(states, mask, decoder, bias):
    best, tokens = largest(states, mask, decoder)
    weights = jax.nn.relu(best + bias)
    return weights, (states, decoder, tokens, weights > 0)


def pooled_backward(kept, gradient):
    # Few terms of a text have a weight, so the gradient is a list of pairs (text, term) instead of products with all.
    states, decoder, tokens, positive = kept
    gradient = jnp.where(positive, gradient, 0)
    # There is room for more pairs than texts of this length have (110 for 96 tokens, on average).
    room = len(states) * (40 + 3 * states.shape[1] // 2)
    texts, terms = jnp.nonzero(positive, size=room, fill_value=-1)
    there = (texts >= 0).astype(gradient.dtype)
    factors = (gradient[texts, terms] * there)[:, None]
    at = tokens[texts, terms]
    for_states = jnp.zeros_like(states).at[texts, at].add(factors * decoder[terms])
    for_decoder = jnp.zeros_like(decoder).at[terms].add(factors * states[texts, at])
    return for_states, None, for_decoder, gradient.sum(0)


pooled.defvjp(pooled_forward, pooled_backward)


def term_weights(weights, config, ids, mask, terms):
    states = hidden(weights, config, ids, mask)
    return jnp.log1p(pooled(states, mask, weights[WORD_EMBEDDINGS][terms], weights[DECODER_BIAS][terms]))


def check(weights, config, tokenizer):
    """The largest difference from the reference vectors of the embedded model."""
    names = [tokenizer.id_to_token(number).replace(".", "__") for number in range(tokenizer.get_vocab_size())]
    worst = 0.0
    for row in json.loads(REFERENCE.read_text())["sparse"]:
        ids = np.array([tokenizer.encode(row["text"]).ids])
        found = np.asarray(term_weights(weights, config, ids, np.ones(ids.shape, np.float32), np.arange(len(names))))[0]
        worst = max(worst, max(abs(row["tokens"].get(name, 0.0) - weight) for name, weight in zip(names, found)))
    assert worst < 1e-3, worst
    return worst


# --- the teachers and their batches -----------------------------------------------------------------------------------------

class Teacher:
    """The texts of one kind, and what the teachers say of them."""

    def __init__(self, work, kind, vocabulary, without):
        texts, found = json.loads((work / "texts.json").read_text()), np.load(work / "teacher.npz")
        passages = [at for at, row in enumerate(texts["passages"])
                    if (row["source"] == "wordnet") == (kind == "wordnet") and row["source"] not in without]
        place = {number: at for at, number in enumerate(passages)}
        queries = [at for at, row in enumerate(texts["queries"]) if row["passage"] in place]
        self.positive = np.array([place[texts["queries"][at]["passage"]] for at in queries])
        self.passages = [texts["passages"][at]["text"] for at in passages]
        self.queries = [texts["queries"][at]["text"] for at in queries]
        self.dense_passages, self.dense_queries = found["dense_passages"][passages], found["dense_queries"][queries]
        terms = lambda name, rows: sparse.csr_matrix(tuple(found[f"terms_{name}_{part}"] for part in ("data", "indices", "indptr")),
                                                     (len(texts[name]), vocabulary))[rows]
        self.terms_passages, self.terms_queries = terms("passages", passages), terms("queries", queries)
        bm25 = Bm25(self.passages)
        self.words_passages, self.words_queries = bm25.weights, bm25.queries(self.queries)
        self.size, self.tokens = SHAPES[kind]
        stored = work / f"hard-{kind}-{len(passages)}.npz"
        if not stored.exists():
            np.savez(stored, **self.highest())
        self.hard = dict(np.load(stored))

    def tokenise(self, tokenizer):
        """Before the first batch; a student that reads no texts has no need of it."""
        self.ids_passages = padded(tokenizer, self.passages, self.tokens)
        self.ids_queries = padded(tokenizer, self.queries, QUERY_TOKENS)

    def highest(self):
        """What either teacher ranks highest for each query."""
        found = {"dense": [], "words": []}
        for first in range(0, len(self.queries), 256):
            rows = slice(first, first + 256)
            for name, scores in (("dense", self.dense_queries[rows] @ self.dense_passages.T),
                                 ("words", (self.words_queries[rows] @ self.words_passages.T).toarray())):
                found[name].append(np.argpartition(-scores, HARD, 1)[:, :HARD].astype(np.int32))
        return {name: np.concatenate(rows) for name, rows in found.items()}

    def draw(self, random, queries):
        """The passages that a batch's queries are scored against, and the distribution over them that is aimed at."""
        wanted = []
        for query in queries:
            drawn = [self.positive[query], *random.choice(self.hard["dense"][query], 2, False),
                     *random.choice(self.hard["words"][query], 2, False), random.integers(len(self.passages))]
            wanted += drawn
        passages = np.array(wanted)
        cosines = self.dense_queries[queries] @ self.dense_passages[passages].T
        words = (self.words_queries[queries] @ self.words_passages[passages].T).toarray()
        # A query's z-scores are over the batch's passages.
        z = lambda scores: (scores - scores.mean(1, keepdims=True)) / (scores.std(1, keepdims=True) + 1e-6)
        scores = (DENSE_WEIGHT * z(cosines) + z(words)) / TEMPERATURE
        target = np.exp(scores - scores.max(1, keepdims=True))
        target /= target.sum(1, keepdims=True)
        labels = (passages[None] == self.positive[queries][:, None]).astype(np.float32)
        target = (1 - LABEL) * target + LABEL * labels / labels.sum(1, keepdims=True)
        return {"rows": passages, "target": target.astype(np.float32)}

    def batch(self, random, queries):
        """What a step of training is given."""
        drawn = self.draw(random, queries)
        passages = drawn["rows"]
        asked, given = self.terms_queries[queries], self.terms_passages[passages]
        chosen = np.unique(asked.indices)[:TERMS - RANDOM_TERMS]
        often = np.bincount(given.indices, minlength=given.shape[1]).astype(np.float32)
        often[chosen] = 0
        chosen = np.concatenate([chosen, np.argsort(-often, kind="stable")[:TERMS - RANDOM_TERMS - len(chosen)]])
        others = np.setdiff1d(np.arange(given.shape[1]), chosen)
        chosen = np.concatenate([chosen, random.choice(others, RANDOM_TERMS, False)])
        before_q, before_p = ((rows[:, chosen] > 0).sum(0) for rows in (asked, given))
        before_q, before_p = np.asarray(before_q).ravel(), np.asarray(before_p).ravel()
        return {
            "queries": self.ids_queries[queries], "passages": self.ids_passages[passages], "terms": chosen.astype(np.int32),
            "target": drawn["target"], "before": np.array([before_p.sum(), before_q @ before_p], np.float32),
        }


def padded(tokenizer, texts, tokens):
    ids = np.zeros((len(texts), tokens), np.int32)
    tokenizer.enable_truncation(tokens)
    for row, text in zip(ids, tokenizer.encode_batch(texts)):
        row[:len(text.ids)] = text.ids
    tokenizer.enable_truncation(512)
    return ids


# --- training ---------------------------------------------------------------------------------------------------------------

def scores_of(weights, config, batch):
    mask = lambda ids: (ids > 0).astype(jnp.float32)
    queries = term_weights(weights, config, batch["queries"], mask(batch["queries"]), batch["terms"])
    passages = term_weights(weights, config, batch["passages"], mask(batch["passages"]), batch["terms"])
    return queries, passages


def divergence(scores, target):
    return (target * (jnp.log(target + 1e-9) - jax.nn.log_softmax(scores, 1))).sum(1).mean()


def loss(weights, config, scale, batch, penalties):
    queries, passages = scores_of(weights, config, batch)
    flops = lambda rows: (rows.mean(0) ** 2).sum()
    apart = divergence(scale * queries @ passages.T, batch["target"])
    counts_q, counts_p = (queries > 0).sum(0).astype(jnp.float32), (passages > 0).sum(0).astype(jnp.float32)
    ratios = jnp.array([counts_p.sum(), counts_q @ counts_p]) / batch["before"]
    return apart + penalties[0] * flops(passages) + penalties[1] * flops(queries), (apart, ratios)


def trained(name, part):
    """Whether a weight is changed when only a part of the model is trained."""
    upper = name.startswith(("bert.encoder.layer.1.", "cls.predictions.")) and not name.startswith("cls.predictions.decoder")
    return {"all": True, "upper": upper, "bias": name == DECODER_BIAS}[part]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=700)
    parser.add_argument("--rate", type=float, default=3e-5)
    parser.add_argument("--penalty", type=float, default=3e-4, help="the FLOPS weights at the first step, and the least ones")
    parser.add_argument("--train", choices=("all", "upper", "bias"), default="all")
    parser.add_argument("--without", nargs="*", default=[], help="sources of passages that are left out")
    parser.add_argument("--every", type=int, default=100, help="steps between checkpoints")
    arguments = parser.parse_args()

    checkpoint, config, tokenizer_text, _ = sparse_checkpoint()
    tokenizer = truncating_tokenizer(tokenizer_text)
    # Without the copy of the word embeddings that some exporters write for the tied decoder.
    weights = {name: jnp.asarray(array) for name, array in checkpoint.items()
               if array.dtype.kind == "f" and not name.startswith(("cls.predictions.decoder", "cls.seq_relationship", "bert.pooler"))}
    print(f"largest difference from the reference: {check(weights, config, tokenizer):.1e}", flush=True)
    random = np.random.default_rng(SEED)
    teachers = {kind: Teacher(arguments.work, kind, tokenizer.get_vocab_size(), arguments.without) for kind in SHAPES}
    order, held = {}, []
    for kind, teacher in teachers.items():
        teacher.tokenise(tokenizer)
        numbers = np.random.default_rng(SEED).permutation(len(teacher.queries))
        order[kind] = numbers[HELD_OUT:]
        held += [teacher.batch(np.random.default_rng(SEED), numbers[first:first + teacher.size])
                 for first in range(0, HELD_OUT // 2, teacher.size)]
    print({kind: (len(teacher.passages), len(teacher.queries)) for kind, teacher in teachers.items()}, flush=True)

    # The student's scores are in a unit of their own: the scale is the one with which the embedded model comes nearest.
    forward = jax.jit(partial(scores_of, config=config))
    pairs = [(np.asarray(q @ p.T), batch["target"]) for batch in held for q, p in [forward(weights, batch=batch)]]
    scales = np.arange(0.05, 1.5, 0.05)
    far = [np.mean([divergence(scale * scores, target) for scores, target in pairs]) for scale in scales]
    scale = float(scales[int(np.argmin(far))])
    certain = np.mean([np.exp(-(target * np.log(target + 1e-9)).sum(1)).mean() for _, target in pairs])
    print(f"scale {scale:.2f}, divergence of the embedded model {min(far):.4f}, perplexity of the teachers {certain:.1f}", flush=True)

    schedule = optax.warmup_cosine_decay_schedule(0, arguments.rate, min(50, arguments.steps // 4), arguments.steps)
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule))
    fixed = {name: array for name, array in weights.items() if not trained(name, arguments.train)}
    changed = {name: array for name, array in weights.items() if name not in fixed}
    state = optimiser.init(changed)

    @jax.jit
    def step(changed, state, batch, penalties):
        whole = lambda changed: loss({**fixed, **changed}, config, scale, batch, penalties)
        (_, aside), gradients = jax.value_and_grad(whole, has_aux=True)(changed)
        updates, state = optimiser.update(gradients, state, changed)
        return optax.apply_updates(changed, updates), state, aside

    def write(folder):
        """The model's files, and in a second folder those of the mean of its weights and the embedded model's."""
        for out, share in ((folder, 1.0), (folder.with_name(f"{folder.name}-half"), 0.5)):
            whole = {name: np.asarray(share * changed.get(name, array) + (1 - share) * array, np.float32) for name, array in weights.items()}
            write_sparse(out, whole, config, tokenizer_text)

    measured = jax.jit(lambda some, batch: loss(some, config, scale, batch, jnp.zeros(2))[1])

    def held_out(some):
        """The divergence on held-out queries, and the terms and postings as shares of the embedded model's."""
        found = [measured(some, batch) for batch in held]
        return np.mean([float(distance) for distance, _ in found]), np.mean([ratios for _, ratios in found], 0)

    penalties, ratio, apart = np.full(2, arguments.penalty, np.float32), np.ones(2), None
    started, places = time.time(), dict.fromkeys(SHAPES, 0)
    for number in range(1, arguments.steps + 1):
        kind = "prose" if random.random() < PROSE_SHARE else "wordnet"
        teacher, place = teachers[kind], places[kind]
        if place + teacher.size > len(order[kind]):
            random.shuffle(order[kind])
            place = 0
        batch = teacher.batch(random, order[kind][place:place + teacher.size])
        places[kind] = place + teacher.size
        changed, state, (distance, ratios) = step(changed, state, batch, jnp.asarray(penalties))
        ratio = 0.9 * ratio + 0.1 * np.asarray(ratios)
        # Passages by their terms, queries by the postings they touch.
        penalties *= np.where(ratio > AIM, 1.05, 0.9).astype(np.float32)
        penalties = penalties.clip(arguments.penalty, 1)
        apart = float(distance) if apart is None else 0.95 * apart + 0.05 * float(distance)
        if number % 10 == 0 or number < 5:
            print(f"{number}: {time.time() - started:.0f} s, divergence {apart:.4f}, terms {ratio[0]:.3f}, postings {ratio[1]:.3f}, "
                  f"penalties {penalties[0]:.1e} {penalties[1]:.1e}", flush=True)
        if number % arguments.every == 0 or number == arguments.steps:
            far, ratios = held_out({**fixed, **changed})
            print(f"{number}: divergence on held-out queries {far:.4f}, terms {ratios[0]:.3f}, postings {ratios[1]:.3f}", flush=True)
            write(arguments.out.with_name(f"{arguments.out.name}-{number}"))


if __name__ == "__main__":
    main()
