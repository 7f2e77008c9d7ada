"""The batches that a student is trained with. See train_student.py."""

import json

import numpy as np

from student_model import LABEL
from student_teachers import PIECE, TEACHERS, Pool, standard, usual_of
from student_texts import PASSAGE_TOKENS, QUERY_TOKENS

SEED = 11
TERMS, RANDOM_TERMS = 4096, 1024
PASSAGES_OF_QUERY = 8
# Queries in a batch and tokens of its passages, by the kind of text.
SHAPES = {"prose": (24, PASSAGE_TOKENS + 2), "wordnet": (48, 32)}
PROSE_SHARE = 0.65
# The teachers' mean standard score times this are the logits of the distribution that is aimed at.
SHARPNESS = 2.0
# One of so many queries is held out.
HELD_OUT = 12


def padded(tokenizer, texts, tokens):
    ids = np.zeros((len(texts), tokens), np.int32)
    tokenizer.enable_truncation(tokens)
    for row, text in zip(ids, tokenizer.encode_batch(texts)):
        row[:len(text.ids)] = text.ids
    tokenizer.enable_truncation(512)
    return ids


class States:
    """The dense model's states of the texts in the pieces, read when they are needed."""

    def __init__(self, work, pool):
        self.work, self.arrays, self.places = work, {}, {}
        places = np.array([row["place"] for row in json.loads((work / "texts.json").read_text())["queries"]])
        numbers = {"passages": np.array(pool.numbers), "queries": np.array(pool.query_numbers)}
        pieces = {"passages": numbers["passages"] // PIECE, "queries": places[numbers["queries"]] // PIECE}
        firsts = {"passages": pieces["passages"] * PIECE, "queries": np.searchsorted(places, pieces["queries"] * PIECE)}
        for part, of in numbers.items():
            self.places[part] = list(zip(pieces[part].tolist(), (of - firsts[part]).tolist()))

    def array(self, piece, name):
        if (piece, name) not in self.arrays:
            self.arrays[piece, name] = np.load(self.work / "pieces" / f"{piece:03}-{name}.npy", mmap_mode="r")
        return self.arrays[piece, name]

    def rows(self, part, wanted, tokens):
        found = None
        for row, at in enumerate(wanted):
            piece, number = self.places[part][at]
            starts, states = self.array(piece, f"{part}_starts"), self.array(piece, f"{part}_states")
            if found is None:
                found = np.zeros((len(wanted), tokens, states.shape[1]), np.float16)
            some = states[starts[number]:starts[number + 1]][:tokens]
            found[row, :len(some)] = some
        return found


class Batches:
    """Batches of texts of one kind, and what the teachers say of them."""

    def __init__(self, work, kind, pieces, tokenizer=None, *, states=False):
        self.pool = Pool(work, kind, pieces)
        self.size, self.tokens = SHAPES[kind]
        self.weights = json.loads((work / "weights.json").read_text())["weights"][kind]
        with np.load(work / f"pool-{kind}-{pieces}.npz") as archive:
            self.hard, self.mean, self.deviation = (archive[name] for name in ("hard", "mean", "deviation"))
        self.usual = [usual_of(deviation) for deviation in self.deviation.T]
        held = np.array(self.pool.query_numbers) % HELD_OUT == 0
        self.held, self.trained = np.flatnonzero(held), np.flatnonzero(~held)
        if tokenizer:
            self.ids = {"passages": padded(tokenizer, self.pool.passages, self.tokens),
                        "queries": padded(tokenizer, self.pool.queries, QUERY_TOKENS + 2)}
        self.states = States(work, self.pool) if states else None

    def draw(self, random, queries, of_query=PASSAGES_OF_QUERY):
        """The passages that a batch's queries are scored against, the teachers' scores, and the distribution that is aimed at."""
        pool, wanted = self.pool, []
        for query in queries:
            hard = random.permutation(self.hard[query][self.hard[query] != pool.positive[query]])
            first = pool.positive[query] if pool.positive[query] >= 0 else hard[-1]
            wanted += [first, *hard[:of_query - 1]]
        passages = np.array(wanted)
        total = 0.0
        for at, teacher in enumerate(TEACHERS):
            if weight := self.weights[teacher]:
                found = pool.scores(teacher, queries, passages)
                total += weight * standard(found, self.mean[queries, at], self.deviation[queries, at], self.usual[at])
        scores = SHARPNESS * total / sum(self.weights.values())
        target = np.exp(scores - scores.max(1, keepdims=True))
        target /= target.sum(1, keepdims=True)
        labels = (passages[None] == pool.positive[queries][:, None]).astype(np.float32)
        found = labels.sum(1, keepdims=True)
        target = np.where(found > 0, (1 - LABEL) * target + LABEL * labels / np.maximum(found, 1), target)
        return {"rows": passages, "scores": scores.astype(np.float32), "target": target.astype(np.float32)}

    def batch(self, random, queries, embedded=False):
        """What a step of training is given: of the terms, all that the embedded model gives to the queries, those it gives most often
        to the passages, and some of the others."""
        drawn = self.draw(random, queries)
        rows = {"queries": queries, "passages": drawn["rows"]}
        asked, given = (self.pool.vectors[part, "embedded"][rows[part]] for part in ("queries", "passages"))
        often = np.bincount(given.indices, minlength=given.shape[1]).astype(np.float32)
        chosen = np.unique(asked.indices)[:TERMS - RANDOM_TERMS]
        often[chosen] = 0
        chosen = np.concatenate([chosen, np.argsort(-often, kind="stable")[:TERMS - RANDOM_TERMS - len(chosen)]])
        others = np.setdiff1d(np.arange(given.shape[1]), chosen)
        stands_for = np.ones(TERMS, np.float32)
        stands_for[len(chosen):] = len(others) / RANDOM_TERMS
        chosen = np.concatenate([chosen, random.choice(others, RANDOM_TERMS, False)]).astype(np.int32)
        count = lambda found: np.bincount(found.indices, minlength=found.shape[1]).astype(np.float32)
        before = np.array([count(given).sum(), count(asked) @ count(given)], np.float32)
        found = {"terms": chosen, "stands_for": stands_for, "scores": drawn["scores"], "target": drawn["target"], "before": before}
        for part, numbers in rows.items():
            found[part] = {"ids": self.ids[part][numbers]}
            if self.states:
                found[part]["states"] = self.states.rows(part, numbers, self.ids[part].shape[1])
        if embedded:
            found.update(embedded_queries=asked[:, chosen].toarray(), embedded_passages=given[:, chosen].toarray())
        return found

    def held_out(self, count, **of):
        """The same batches every time, from queries that are never trained with."""
        numbers = np.random.default_rng(SEED).permutation(self.held)[:min(count, len(self.held)) // self.size * self.size]
        return [self.batch(np.random.default_rng(SEED), numbers[first:first + self.size], **of)
                for first in range(0, len(numbers), self.size)]
