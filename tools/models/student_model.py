"""The forward passes of the two students, and their losses. See train_student.py.

`tiny` is the published sparse model itself: BERT-tiny, whose inputs are token numbers. `head` is a sparse head on the last states of the
embedded dense model, which are its inputs: the states times a matrix (identity at first), times the dense model's word embeddings, plus a
bias for each term. Both give a text the weights `log(1 + relu(max over tokens of the logits))`.
"""

import jax
import jax.numpy as jnp
import numpy as np

from build_models import TRANSFORM, WORD_EMBEDDINGS, sparse_reference, sparse_vocabulary

DECODER_BIAS = "cls.predictions.bias"
# Of a `head`.
MATRIX, HEAD_BIAS, HEAD_DECODER = "matrix", "bias", "decoder"
LABEL = 0.2
MARGIN_SHARE = 0.05


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
def best_of(states, mask, decoder):
    """The largest logit, without bias, of each term over a text's tokens."""
    return largest(states, mask, decoder)[0]


def best_forward(states, mask, decoder):
    best, tokens = largest(states, mask, decoder)
    return best, (states, decoder, tokens)


def best_backward(kept, gradient):
    # Few terms of a text have a gradient, so it is a list of pairs (text, term) instead of products with all.
    states, decoder, tokens = kept
    # There is room for more pairs than texts of this length have (110 for 96 tokens, on average).
    room = len(states) * (60 + 2 * states.shape[1])
    texts, terms = jnp.nonzero(gradient, size=room, fill_value=-1)
    there = (texts >= 0).astype(gradient.dtype)
    factors = (gradient[texts, terms] * there)[:, None]
    at = tokens[texts, terms]
    for_states = jnp.zeros_like(states).at[texts, at].add(factors * decoder[terms])
    for_decoder = jnp.zeros_like(decoder).at[terms].add(factors * states[texts, at])
    return for_states, None, for_decoder


best_of.defvjp(best_forward, best_backward)


def logits(weights, config, texts, terms):
    """The largest logits of some terms in each text. `texts` has the ids of its tokens and, for a `head`, the dense model's states."""
    mask = (texts["ids"] > 0).astype(jnp.float32)
    if MATRIX in weights:
        states = texts["states"].astype(jnp.float32) @ weights[MATRIX]
        return best_of(states, mask, weights[HEAD_DECODER][terms]) + weights[HEAD_BIAS][terms]
    states = hidden(weights, config, texts["ids"], mask)
    return best_of(states, mask, weights[WORD_EMBEDDINGS][terms]) + weights[DECODER_BIAS][terms]


def term_weights(weights, config, texts, terms):
    return jnp.log1p(jax.nn.relu(logits(weights, config, texts, terms)))


def check(weights, config, tokenizer):
    """The largest difference from vectors that the reference computes of the same weights."""
    names = sparse_vocabulary(tokenizer)
    worst = 0.0
    for row in sparse_reference(weights, config, tokenizer):
        ids = np.array([tokenizer.encode(row["text"]).ids])
        found = np.asarray(term_weights(weights, config, {"ids": ids}, np.arange(len(names))))[0]
        worst = max(worst, max(abs(row["tokens"].get(name, 0.0) - weight) for name, weight in zip(names, found)))
    assert worst < 1e-3, worst
    return worst


# --- losses -----------------------------------------------------------------------------------------------------------------

def vectors(weights, config, batch):
    return tuple(term_weights(weights, config, batch[part], batch["terms"]) for part in ("queries", "passages"))


def divergence(scores, target):
    """Relative entropy of a distribution by scores to the one aimed at, the mean over queries."""
    return (target * (jnp.log(target + 1e-9) - jax.nn.log_softmax(scores, 1))).sum(1).mean()


def own(scores):
    """Of the scores of all passages, those of a query's own, the first less the others: [queries, passages of one - 1]."""
    count = len(scores)
    rows = scores.reshape(count, count, -1)[jnp.arange(count), jnp.arange(count)]
    return rows[:, :1] - rows[:, 1:]


def ranking_loss(weights, config, scale, batch, penalties):
    """How far the student is from its teachers, with penalties for what it costs; aside, that distance and the costs as shares of the
    embedded model's. A batch has all terms that matter to it and a few of the others, each of which stands for many (`stands_for`)."""
    queries, passages = vectors(weights, config, batch)
    stands_for = batch["stands_for"]
    flops = lambda rows: (stands_for * rows.mean(0) ** 2).sum()
    scores = scale * queries @ passages.T
    apart = divergence(scores, batch["target"])
    margins = ((own(scores) - own(batch["scores"])) ** 2).mean()
    counts_q, counts_p = (queries > 0).sum(0).astype(jnp.float32), (passages > 0).sum(0).astype(jnp.float32)
    ratios = jnp.array([(stands_for * counts_p).sum(), (stands_for * counts_q * counts_p).sum()]) / batch["before"]
    total = apart + MARGIN_SHARE * margins + penalties[0] * flops(passages) + penalties[1] * flops(queries)
    return total, (apart, ratios)


def imitation_loss(weights, config, scale, batch, penalties):
    """How far the student's term weights are from the embedded model's. A logit below zero counts as a weight below zero where there
    ought to be one, so that it is drawn up."""
    total = 0.0
    for part in ("queries", "passages"):
        wanted, found = batch[f"embedded_{part}"], logits(weights, config, batch[part], batch["terms"])
        found = jnp.where(wanted > 0, jnp.where(found > 0, jnp.log1p(jax.nn.relu(found)), found), jnp.log1p(jax.nn.relu(found)))
        total += (batch["stands_for"] * (found - wanted) ** 2).sum(1).mean()
    return total, (total, jnp.ones(2))


LOSSES = {"rank": ranking_loss, "imitate": imitation_loss}
