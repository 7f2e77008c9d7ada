"""Trains students of several teachers on one GPU, in minutes.

    python student_gpu.py BUNDLE OUT --tiny SECONDS --head SECONDS [--texts sample] [--device cpu]

BUNDLE is what student_bundle.py wrote. Two students are trained, each for so many seconds: `tiny`, the embedded sparse model continued,
and `head`, one more layer and a head on the states of the embedded dense model, which stays as it is. OUT gets the moving average of
each student's weights and `log.jsonl`.

The teachers are dense models (cosines), BM25, and the embedded sparse model (dot products). A teacher's score of a passage counts in
deviations from its mean over the passages that any teacher ranks high for the query. A batch is some queries and, for each, the passage
that it was made from (if there is one) and others that a teacher ranks high. Every query is scored against all passages of the batch. The
loss is the Kullback-Leibler divergence of the student's distribution over the passages from the teachers', plus the squared differences of
the margins between a query's own passages. FLOPS regularisation (Paria and others, 2020) keeps the vectors sparse; its weights are steered,
so that passages have no more terms, and queries touch no more postings, than a given share of the embedded model's.
"""

import argparse
import functools
import io
import json
import lzma
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

SEED = 52
VOCABULARY = 30522
LENGTHS = {"prose": (128, 32), "wordnet": (40, 32)}
# Queries in a batch, and passages of each.
SHAPES = {"prose": (160, 12), "wordnet": (288, 12)}
PROSE_SHARE, QUESTION_SHARE = 0.7, 0.2
HARD, FROM_EACH = 32, 24
# Heads, pooling, and token numbers of what stands before a query and before a passage.
DENSE = {"bge": (12, "cls", "Represent this sentence for searching relevant passages:", ""), "e5": (12, "mean", "query:", "passage:"),
         "minilm": (12, "mean", "", "")}
TEACHERS = (*DENSE, "words", "embedded")
WEIGHTS = {"prose": {"bge": 1.5, "e5": 1.0, "minilm": 0.5, "words": 1.0, "embedded": 0.0},
           "wordnet": {"bge": 2.0, "e5": 2.0, "minilm": 4.0, "words": 1.0, "embedded": 0.0}}
# The teachers' mean standard score times this are the logits of the distribution that is aimed at; the share of the label in it.
SHARPNESS, LABEL, MARGIN_SHARE = 2.0, 0.2, 0.05
# Of BM25: as student_bundle.py says.
STEMS = 32768
AVERAGE, WARM_UP = 0.998, 0.03
STEERING, PENALTIES = 0.03, (1e-6, 3.0)


class Log:
    def __init__(self, out):
        self.path, self.start = out / "log.jsonl", time.time()

    def __call__(self, **what):
        line = json.dumps({"s": round(time.time() - self.start, 1), **what})
        with open(self.path, "a") as out:
            out.write(line + "\n")
        print(line, flush=True)


# --- what the bundle has -----------------------------------------------------------------------------------------------------

def archive(bundle, name):
    with np.load(io.BytesIO(lzma.decompress((bundle / f"{name}.xz").read_bytes()))) as stored:
        return {key: stored[key] for key in stored.files}


def model(arrays, device):
    whole = lambda name: arrays[name].astype(np.float32) * arrays[name + "_scale"] if name + "_scale" in arrays else arrays[name]
    return {name: torch.tensor(whole(name).astype(np.float32), device=device) for name in arrays if not name.endswith("_scale")}


def padded(ids, lengths, tokens, before=()):
    """Rows of token numbers, with those of `before` behind the first; [texts, tokens + how many these are]."""
    rows = np.zeros((len(lengths), tokens + len(before)), np.int32)
    at = np.arange(tokens)[None] < lengths[:, None].astype(int)
    rows[:, len(before):][at] = ids
    if len(before):
        rows[:, 0] = rows[:, len(before)]
        rows[:, 1:len(before) + 1] = before
    return rows


# --- forward passes ----------------------------------------------------------------------------------------------------------

def layer(weights, number, x, mask, heads):
    part = lambda name, x: F.linear(x, weights[f"{number}.{name}.w"], weights[f"{number}.{name}.b"])
    norm = lambda name, x: F.layer_norm(x, x.shape[-1:], weights[f"{number}.{name}.w"], weights[f"{number}.{name}.b"], 1e-12)
    split = lambda x: x.view(*x.shape[:2], heads, -1).transpose(1, 2)
    context = F.scaled_dot_product_attention(*(split(part(name, x)) for name in "qkv"), attn_mask=mask[:, None, None])
    x = norm("ln1", part("o", context.transpose(1, 2).reshape(x.shape)) + x)
    return norm("ln2", part("down", F.gelu(part("up", x))) + x)


def trunk(weights, ids, heads):
    """Last hidden states, [texts, tokens, width]."""
    mask = ids > 0
    x = F.embedding(ids, weights["word"]) + weights["position"][:ids.shape[1]]
    x = F.layer_norm(x, x.shape[-1:], weights["ln.w"], weights["ln.b"], 1e-12)
    for number in range(sum(name.endswith(".q.w") for name in weights)):
        x = layer(weights, number, x, mask, heads)
    return x


def transformed(weights, x):
    x = F.gelu(F.linear(x, weights["transform.w"], weights["transform.b"]))
    return F.layer_norm(x, x.shape[-1:], weights["transform.ln.w"], weights["transform.ln.b"], 1e-12)


class Best(torch.autograd.Function):
    """The largest logit of each term over a text's tokens, without bias; [texts, terms]."""

    @staticmethod
    def forward(ctx, states, decoder):
        count, tokens, width = states.shape
        best = torch.empty(count, len(decoder), device=states.device)
        at = torch.empty(count, len(decoder), dtype=torch.int16, device=states.device)
        step = max(1, 8192 // tokens)
        for first in range(0, count, step):
            logits = (states[first:first + step].reshape(-1, width) @ decoder.T).view(-1, tokens, len(decoder))
            best[first:first + step], at[first:first + step] = logits.max(1)
        ctx.save_for_backward(states, decoder, at)
        return best

    @staticmethod
    def backward(ctx, gradient):
        # Few terms of a text have a gradient, so it is a list of pairs (text, term) instead of products with all.
        states, decoder, at = ctx.saved_tensors
        texts, terms = gradient.nonzero(as_tuple=True)
        factors = gradient[texts, terms][:, None]
        tokens = at[texts, terms].long()
        for_states = torch.zeros(states.shape[0] * states.shape[1], states.shape[2], device=states.device)
        for_states.index_add_(0, texts * states.shape[1] + tokens, factors * decoder[terms])
        for_decoder = None
        if ctx.needs_input_grad[1]:
            for_decoder = torch.zeros(decoder.shape, device=states.device).index_add_(0, terms, factors * states[texts, tokens])
            for_decoder = for_decoder.to(decoder.dtype)
        return for_states.view(states.shape).to(states.dtype), for_decoder


class Tiny:
    heads = 2

    def __init__(self, start):
        self.start = start

    def logits(self, weights, ids, states=None):
        x = transformed(weights, trunk(weights, ids, self.heads))
        return largest(x, ids, weights["word"]) + weights["bias"]


class Head:
    heads = 12

    def __init__(self, dense):
        self.dense = dense
        last = sum(name.endswith(".q.w") for name in dense) - 1
        copied = lambda name: dense[f"{last}.{name}"].clone()
        width = dense["word"].shape[1]
        self.start = {f"0.{part}.{end}": copied(f"{part}.{end}") for part in ("q", "k", "v", "o", "ln1", "up", "down", "ln2") for end in "wb"}
        for name in ("0.o.w", "0.o.b", "0.down.w", "0.down.b"):
            self.start[name] *= 0.1
        self.start |= {"transform.w": torch.eye(width, device=dense["word"].device), "transform.b": torch.zeros_like(dense["ln.b"]),
                       "transform.ln.w": torch.ones_like(dense["ln.w"]), "transform.ln.b": torch.zeros_like(dense["ln.b"]),
                       "bias": torch.zeros(len(dense["word"]), device=dense["word"].device)}

    def logits(self, weights, ids, states=None):
        if states is None:
            with torch.no_grad():
                states = trunk(self.dense, ids, self.heads)
        x = transformed(weights, layer(weights, 0, states, ids > 0, self.heads))
        return largest(x, ids, self.dense["word"]) + weights["bias"]


def largest(x, ids, decoder):
    # Padding repeats the first token, so that it is the largest of nothing.
    x = torch.where((ids > 0)[..., None], x, x[:, :1])
    half = torch.bfloat16 if x.is_cuda and torch.is_autocast_enabled() else x.dtype
    return Best.apply(x.to(half), decoder.to(half))


def term_weights(student, weights, ids, states=None):
    return torch.log1p(F.relu(student.logits(weights, ids, states)))


def autocast(device):
    return torch.autocast(device, torch.bfloat16, enabled=device == "cuda")


# --- what the teachers say ---------------------------------------------------------------------------------------------------

def in_batches(run, ids, tokens=131072):
    """Calls `run` with some rows at a time."""
    step = max(1, tokens // ids.shape[1])
    return torch.cat([run(ids[first:first + step]) for first in range(0, len(ids), step)])


def words_of_passages(texts, kind, device):
    """BM25 weights (k1 1.2, b 0.75) of all passages, [passages, columns]."""
    columns, starts, counts = (texts[f"{kind} passages {name}"] for name in ("columns", "starts", "counts"))
    columns, counts, held = columns.astype(int), counts.astype(np.float32), np.diff(starts)
    holding = np.bincount(columns, minlength=2 * STEMS).clip(max=len(held))
    idf = np.log(1 + (len(held) - holding + 0.5) / (holding + 0.5))
    rows = np.repeat(np.arange(len(held)), held)
    lengths = np.bincount(rows, counts, len(held))
    weights = idf[columns] * counts * 2.2 / (counts + 1.2 * (0.25 + 0.75 * lengths / lengths.mean())[rows])
    found = torch.zeros(len(held), 2 * STEMS, dtype=torch.bfloat16, device=device)
    put = [torch.tensor(array, device=device) for array in (rows, columns, weights.astype(np.float32))]
    found.index_put_(put[:2], put[2].bfloat16(), accumulate=True)
    return found


def words_of_queries(texts, kind, device):
    """The columns of the words of each query, filled up with one that there is not."""
    columns, starts, counts = (texts[f"{kind} queries {name}"] for name in ("columns", "starts", "counts"))
    held = np.diff(starts)
    found = np.full((len(held), max(1, int(held.max()))), 2 * STEMS)
    found[np.arange(found.shape[1])[None] < held[:, None]] = columns
    return torch.tensor(found, device=device)


class Pool:
    """The texts of one kind on the device, what each teacher gives them, and for each query the passages that any of them ranks high."""

    def __init__(self, kind, texts, models, tiny, prompts, device, log):
        self.kind, self.device = kind, device
        self.ids, rows = {}, {}
        for part, tokens in zip(("passages", "queries"), LENGTHS[kind]):
            rows[part] = texts[f"{kind} {part} ids"], texts[f"{kind} {part} lengths"]
            self.ids[part] = torch.tensor(padded(*rows[part], tokens), device=device)
        self.positive = torch.tensor(texts[f"{kind} positive"].astype(np.int64), device=device)
        self.question = texts[f"{kind} question"]
        self.vectors, self.states = {}, {}
        for part in self.ids:
            tokens = self.ids[part].shape[1]
            for name, weights in models.items():
                heads, pooling, *before = DENSE[name]
                ids = torch.tensor(padded(*rows[part], tokens, prompts[before[part == "passages"]]), device=device)
                self.vectors[part, name] = in_batches(functools.partial(self.dense, weights, heads, pooling), ids)
            with torch.no_grad(), autocast(device):
                self.states[part] = in_batches(lambda ids: trunk(models["minilm"], ids, 12).to(torch.bfloat16), self.ids[part])
                self.vectors[part, "embedded"] = in_batches(
                    lambda ids: term_weights(tiny, tiny.start, ids).to(torch.bfloat16), self.ids[part])
        log(kind=kind, encoded={part: len(ids) for part, ids in self.ids.items()})
        self.vectors["passages", "words"] = words_of_passages(texts, kind, device)
        self.vectors["queries", "words"] = words_of_queries(texts, kind, device)
        self.mine()
        log(kind=kind, mined=len(self.hard))
        held = np.arange(len(self.positive)) % 50 == 0
        self.held = np.flatnonzero(held)
        self.trained, self.questions = np.flatnonzero(~held & ~self.question), np.flatnonzero(~held & self.question)

    def dense(self, weights, heads, pooling, ids):
        with torch.no_grad(), autocast(self.device):
            x = trunk(weights, ids, heads).float()
        x = x[:, 0] if pooling == "cls" else (x * (ids > 0)[..., None]).sum(1)
        return F.normalize(x, dim=1).to(torch.bfloat16)

    def scores(self, teacher, queries, passages=slice(None)):
        asked = self.vectors["queries", teacher][queries]
        if teacher == "words":
            one = torch.ones(1, dtype=torch.bfloat16, device=self.device).expand(asked.shape)
            asked = torch.zeros(len(asked), 2 * STEMS + 1, dtype=torch.bfloat16, device=self.device).scatter_add_(1, asked, one)[:, :-1]
        return (asked @ self.vectors["passages", teacher][passages].T).float()

    def mine(self):
        """HARD passages of each query from the union of the teachers' lists, one of each teacher in turn, and how each teacher's scores
        spread over them."""
        hard, mean, deviation = [], [], []
        teachers = [name for name in TEACHERS if WEIGHTS[self.kind].get(name, 0) and ("queries", name) in self.vectors]
        for first in range(0, len(self.positive), 512):
            some = slice(first, first + 512)
            scores = {teacher: self.scores(teacher, some) for teacher in teachers}
            lists = torch.stack([found.topk(FROM_EACH, 1).indices for found in scores.values()], 2).flatten(1)
            again = (lists[:, :, None] == lists[:, None]).tril(-1).any(2)
            order = (again.int() * lists.shape[1] + torch.arange(lists.shape[1], device=self.device)).argsort(1)[:, :HARD]
            found = lists.gather(1, order)
            hard.append(found)
            spread = torch.stack([rows.gather(1, found) for rows in scores.values()], 2)
            mean.append(spread.mean(1))
            deviation.append(spread.std(1))
        self.teachers, self.hard = teachers, torch.cat(hard)
        self.mean, self.deviation = torch.cat(mean), torch.cat(deviation)
        self.usual = [column[column > 0].median() for column in self.deviation.T]

    def draw(self, random, count):
        """Numbers of a batch's queries."""
        if not len(self.questions):
            return random.choice(self.trained, count, False)
        questions = int(count * QUESTION_SHARE)
        return np.concatenate([random.choice(self.questions, questions, False), random.choice(self.trained, count - questions, False)])

    def batch(self, random, numbers):
        queries = torch.tensor(numbers, device=self.device)
        count, own = len(queries), SHAPES[self.kind][1]
        # The query's own passage comes first; without one, one that a teacher ranks high.
        keys = torch.tensor(random.random((count, HARD)), device=self.device)
        positive = self.positive[queries]
        keys[self.hard[queries] == positive[:, None]] = 2
        others = self.hard[queries].gather(1, keys.argsort(1)[:, :own])
        passages = torch.cat([torch.where(positive >= 0, positive, others[:, own - 1])[:, None], others[:, :own - 1]], 1).flatten()
        total, whole = 0.0, 0.0
        for at, teacher in enumerate(self.teachers):
            weight = WEIGHTS[self.kind][teacher]
            found = self.scores(teacher, queries, passages)
            deviation = self.deviation[queries, at].clamp(min=float(self.usual[at]) / 4)
            total = total + weight * (found - self.mean[queries, at][:, None]) / deviation[:, None]
            whole += weight
        scores = SHARPNESS * total / whole
        target = scores.softmax(1)
        labels = (passages[None] == positive[:, None]).float()
        found = labels.sum(1, keepdim=True)
        target = torch.where(found > 0, (1 - LABEL) * target + LABEL * labels / found.clamp(min=1), target)
        asked, given = self.vectors["queries", "embedded"][queries] > 0, self.vectors["passages", "embedded"][passages] > 0
        counts = given.sum(0).double()
        return {"queries": queries, "passages": passages, "scores": scores, "target": target,
                "before": (counts.sum(), asked.sum(0).double() @ counts)}


# --- training ----------------------------------------------------------------------------------------------------------------

def divergence(scores, target):
    return (target * ((target + 1e-9).log() - scores.log_softmax(1))).sum(1).mean()


def own(scores):
    """Of the scores of all passages, those of a query's own, the first less the others: [queries, passages of one - 1]."""
    count = len(scores)
    rows = scores.view(count, count, -1)[torch.arange(count), torch.arange(count)]
    return rows[:, :1] - rows[:, 1:]


class Training:
    def __init__(self, name, student, pools, log, device):
        self.name, self.student, self.pools, self.log, self.device = name, student, pools, log, device
        self.weights = {key: value.clone().requires_grad_() for key, value in student.start.items()}
        self.average = {key: value.clone() for key, value in student.start.items()}
        self.penalties = {kind: torch.full((2,), 1e-3, device=device) for kind in pools}
        self.ratios = {kind: torch.ones(2, device=device) for kind in pools}

    def vectors(self, pool, batch, weights, logits=False):
        found = []
        for part in ("queries", "passages"):
            numbers = batch[part]
            states = pool.states[part][numbers].float() if isinstance(self.student, Head) else None
            with autocast(self.device):
                found.append(self.student.logits(weights, pool.ids[part][numbers], states).float())
        return found if logits else [torch.log1p(F.relu(rows)) for rows in found]

    def ranking(self, pool, batch, aim):
        queries, passages = self.vectors(pool, batch, self.weights)
        with torch.no_grad():
            asked, given = (queries > 0).sum(0).double(), (passages > 0).sum(0).double()
            ratio = torch.stack([given.sum() / batch["before"][0], asked @ given / batch["before"][1]]).float()
            self.ratios[pool.kind] = 0.9 * self.ratios[pool.kind] + 0.1 * ratio
            self.penalties[pool.kind] = (self.penalties[pool.kind] * (STEERING * (self.ratios[pool.kind] - aim)).exp()).clamp(*PENALTIES)
        scores = self.scale * queries @ passages.T
        apart = divergence(scores, batch["target"])
        margins = ((own(scores) - own(batch["scores"])) ** 2).mean()
        flops = lambda rows: (rows.mean(0) ** 2).sum()
        penalties = self.penalties[pool.kind]
        return apart + MARGIN_SHARE * margins + penalties[0] * flops(passages) + penalties[1] * flops(queries), apart.detach()

    def imitation(self, pool, batch, _):
        """How far the term weights are from the embedded model's. A logit below zero counts as a weight below zero where there ought to
        be one, so that it is drawn up."""
        total = 0.0
        for part, found in zip(("queries", "passages"), self.vectors(pool, batch, self.weights, logits=True)):
            wanted = pool.vectors[part, "embedded"][batch[part]].float()
            positive = torch.log1p(F.relu(found))
            found = torch.where(wanted > 0, torch.where(found > 0, positive, found), positive)
            total = total + ((found - wanted) ** 2).sum(1).mean()
        return total, total.detach()

    def find_scale(self):
        """The student's scores are in a unit of their own: the factor with which they come nearest to the teachers' distribution."""
        scales, far = np.geomspace(0.02, 3, 60), 0.0
        for pool in self.pools.values():
            random = np.random.default_rng(SEED)
            batch = pool.batch(random, random.choice(pool.held, min(len(pool.held), SHAPES[pool.kind][0]), False))
            with torch.no_grad():
                queries, passages = self.vectors(pool, batch, self.weights)
                far = far + torch.stack([divergence(float(scale) * queries @ passages.T, batch["target"]) for scale in scales])
        self.scale = float(scales[int(far.argmin())])

    def run(self, task, rate, seconds, aim, pull=0.0, steps=None):
        optimiser = torch.optim.Adam(self.weights.values(), lr=rate, fused=self.device == "cuda")
        loss = {"rank": self.ranking, "imitate": self.imitation}[task]
        if task == "rank":
            self.find_scale()
            self.average = {key: value.detach().clone() for key, value in self.weights.items()}
        step, started, apart, said = 0, time.time(), {kind: None for kind in self.pools}, 0.0
        while True:
            share = step / steps if steps else (time.time() - started) / seconds
            if share >= 1:
                break
            random = np.random.default_rng([SEED, step])
            pool = self.pools["prose" if random.random() < PROSE_SHARE else "wordnet"]
            batch = pool.batch(random, pool.draw(random, SHAPES[pool.kind][0]))
            now = rate * min(1.0, (share + 1e-4) / WARM_UP, (1 - share) / 0.6)
            for group in optimiser.param_groups:
                group["lr"] = now
            value, far = loss(pool, batch, aim)
            optimiser.zero_grad(set_to_none=True)
            value.backward()
            torch.nn.utils.clip_grad_norm_(self.weights.values(), 1.0 if task == "rank" else 50.0)
            optimiser.step()
            with torch.no_grad():
                kept, new = list(self.average.values()), list(self.weights.values())
                if pull:
                    first = list(self.student.start.values())
                    torch._foreach_mul_(new, 1 - now * pull)
                    torch._foreach_add_(new, first, alpha=now * pull)
                torch._foreach_lerp_(kept, new, 1 - min(AVERAGE, (1 + step) / (10 + step)))
            apart[pool.kind] = far if apart[pool.kind] is None else 0.98 * apart[pool.kind] + 0.02 * far
            step += 1
            if time.time() - said > 15:
                said = time.time()
                self.log(student=self.name, task=task, rate=rate, step=step, share=round(share, 3), scale=round(getattr(self, "scale", 0), 3),
                         apart={kind: None if value is None else round(float(value), 4) for kind, value in apart.items()},
                         ratios={kind: [round(float(x), 3) for x in value] for kind, value in self.ratios.items()},
                         penalties={kind: [float(f"{x:.2e}") for x in value] for kind, value in self.penalties.items()})
        held_out = self.held_out() if task == "rank" else {}
        self.log(student=self.name, task=task, rate=rate, steps=step, held_out=held_out)
        return sum(far or 0 for far in held_out.values())

    def held_out(self):
        """How far the average is from the teachers on queries that were not trained with."""
        found = {}
        for kind, pool in self.pools.items():
            size, values = SHAPES[kind][0], []
            for first in range(0, min(len(pool.held) // size, 8) * size, size):
                batch = pool.batch(np.random.default_rng(SEED), pool.held[first:first + size])
                with torch.no_grad():
                    queries, passages = self.vectors(pool, batch, self.average)
                    values.append(divergence(self.scale * queries @ passages.T, batch["target"]).item())
            found[kind] = round(float(np.mean(values)), 4) if values else None
        return found


def save(path, weights):
    np.savez(path, **{key: value.detach().float().cpu().numpy().astype(np.float16 if value.ndim == 2 else np.float32)
                      for key, value in weights.items()})


# --- judging -----------------------------------------------------------------------------------------------------------------

class Sets:
    def __init__(self, arrays, device):
        self.sets, self.device = {}, device
        for name in sorted({key.rpartition(" ")[0].rpartition(" ")[0] for key in arrays if key.endswith("documents ids")}):
            rows = {part: (arrays[f"{name} {part} ids"], arrays[f"{name} {part} lengths"].astype(int)) for part in ("documents", "queries")}
            self.sets[name] = rows, arrays[f"{name} grades"]

    def encoded(self, student, weights, ids, lengths):
        order = np.argsort(lengths, kind="stable")
        starts = np.cumsum(np.r_[0, lengths])
        found = torch.zeros(len(lengths), VOCABULARY, device=self.device)
        at = 0
        while at < len(order):
            tokens = int(lengths[order[min(len(order), at + 64) - 1]])
            some = order[at:at + 64]
            rows = np.zeros((len(some), tokens), np.int32)
            for row, number in enumerate(some):
                rows[row, :lengths[number]] = ids[starts[number]:starts[number + 1]]
            with torch.no_grad():
                found[torch.tensor(some, device=self.device)] = term_weights(student, weights, torch.tensor(rows, device=self.device))
            at += 64
        return found

    def judge(self, student, weights, before=None):
        """nDCG@10, terms of a document and of a query, and postings touched (as a share of another report's), by collection."""
        report = {}
        for name, (rows, grades) in self.sets.items():
            documents, queries = (self.encoded(student, weights, *rows[part]) for part in ("documents", "queries"))
            best = torch.cat([(queries[first:first + 64] @ documents.T).topk(10, 1).indices for first in range(0, len(queries), 64)]).cpu().numpy()
            wanted = [{} for _ in best]
            for query, document, grade in grades:
                wanted[int(query)][int(document)] = grade
            gains = lambda found: sum((2 ** grade - 1) / np.log2(place + 2) for place, grade in enumerate(found))
            values = [gains([row.get(document, 0) for document in found]) / gains(sorted(row.values())[::-1][:10])
                      for found, row in zip(best, wanted)]
            terms = [(part > 0).sum(0).double() for part in (documents, queries)]
            touched = float(terms[0] @ terms[1]) / len(queries)
            report[name] = [round(float(np.mean(values)), 4), round(float(terms[0].sum()) / len(documents), 1),
                            round(float(terms[1].sum()) / len(queries), 1),
                            round(touched if before is None else touched / before[name][3], 3)]
        for part in ("dev", "judged"):
            some = [row for name, row in report.items() if name.startswith(part)]
            report[f"mean {part}"] = [round(float(value), 4) for value in np.mean(some, 0)]
        return report


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bundle", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--texts", default="texts")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", type=float, default=0)
    parser.add_argument("--head", type=float, default=0)
    parser.add_argument("--rates", type=float, nargs="*", default=[3e-4], help="of `tiny`; of several, that is taken which comes nearest to the teachers in a tenth of the time")
    parser.add_argument("--head-rate", type=float, default=5e-4)
    parser.add_argument("--aim", type=float, default=0.9, help="the terms and postings of `tiny`, as a share of the embedded model's")
    parser.add_argument("--head-aim", type=float, default=1.3)
    parser.add_argument("--imitation", type=int, default=600, help="steps in which `head` learns to do what the embedded model does")
    arguments = parser.parse_args()
    device, bundle, out = arguments.device, arguments.bundle, arguments.out
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.manual_seed(SEED)
    log = Log(out)
    names = [name for name in ("tiny", *DENSE, arguments.texts, "sets") if (bundle / f"{name}.xz").exists()]
    with ThreadPoolExecutor(8) as threads:
        found = dict(zip(names, threads.map(functools.partial(archive, bundle), names)))
    vocabulary = json.loads((bundle / "vocabulary.json").read_text())
    numbers = {name: number for number, name in enumerate(vocabulary)}
    pieces = lambda prompt: [numbers[piece] for piece in prompt.lower().replace(":", " :").split()]
    prompts = {prompt: pieces(prompt) for *_, query, passage in DENSE.values() for prompt in (query, passage)}
    models = {name: model(found[name], device) for name in DENSE if name in found}
    tiny = Tiny(model(found["tiny"], device))
    log(loaded=names, prompts=prompts)
    sets = Sets(found["sets"], device)
    before = sets.judge(tiny, tiny.start)
    log(embedded=before)
    pools = {kind: Pool(kind, found[arguments.texts], models, tiny, prompts, device, log) for kind in LENGTHS}
    if device == "cuda":
        log(memory_gb=round(torch.cuda.max_memory_allocated() / 1e9, 1))
    if arguments.tiny:
        rate, far = arguments.rates[0], {}
        if len(arguments.rates) > 1:
            for rate in arguments.rates:
                far[rate] = Training(f"tiny {rate:g}", tiny, pools, log, device).run("rank", rate, arguments.tiny / 10, arguments.aim, pull=0.2)
            rate = min(far, key=far.get)
        training = Training("tiny", tiny, pools, log, device)
        training.run("rank", rate, arguments.tiny, arguments.aim, pull=0.2)
        save(out / "tiny.npz", training.average)
        for share in (1.0, 0.75, 0.5):
            soup = {key: (1 - share) * tiny.start[key] + share * value for key, value in training.average.items()}
            log(tiny=share, judged=sets.judge(tiny, soup, before))
    if arguments.head:
        head = Head(models["minilm"])
        training = Training("head", head, pools, log, device)
        pool = pools["prose"]
        with torch.no_grad():
            batch = pool.batch(np.random.default_rng(SEED), pool.trained[:SHAPES["prose"][0]])
            rows = training.vectors(pool, batch, training.weights, logits=True)[1]
            training.weights["bias"].copy_(-(rows.mean(0) + 2.5 * rows.std(0)))
        training.run("imitate", 1e-3, None, None, steps=arguments.imitation)
        log(head="imitated", judged=sets.judge(head, {key: value.detach() for key, value in training.weights.items()}, before))
        head.start = {key: value.detach().clone() for key, value in training.weights.items()}
        training.run("rank", arguments.head_rate, arguments.head, arguments.head_aim)
        save(out / "head.npz", training.average)
        log(head=1.0, judged=sets.judge(head, training.average, before))


if __name__ == "__main__":
    main()
