"""Judges a student on the development sets while it is trained. What is shipped is judged by judge_student.py, on other texts.

Of the documents only the terms that queries have are looked at: nDCG@10 and the postings that a query touches need no others.
"""

import jax
import numpy as np

from build_models import WORD_EMBEDDINGS
from judge_student import collection, ndcg, ranked
from student_model import DECODER_BIAS, HEAD_BIAS, HEAD_DECODER, MATRIX, best_of, hidden
from student_teachers import DEV, DEV_TOKENS, products, terms_of

LENGTHS = (16, 32, 64, 128, DEV_TOKENS)
TOKENS = 8192
TERMS = 4096


class Dev:
    def __init__(self, work, config, tokenizer, student):
        self.config, self.student, self.sets = config, student, {}
        self.vocabulary = tokenizer.get_vocab_size()
        tokenizer.enable_truncation(DEV_TOKENS)
        for names in DEV.values():
            for name in names:
                documents, queries, wanted = collection(work / "dev" / name, "qrels.test.tsv")
                with np.load(work / "dev" / f"{name}.npz") as archive:
                    asked, given = (terms_of(archive, part, self.vocabulary) for part in ("queries", "passages"))
                    states = {part: (archive[f"{part}_states"], archive[f"{part}_starts"]) if student == "head" else None
                              for part in ("passages", "queries")}
                ids = {part: [row.ids for row in tokenizer.encode_batch(texts)]
                       for part, texts in (("passages", documents), ("queries", queries))}
                touched = np.bincount(given.indices, minlength=self.vocabulary)[asked.indices].sum()
                quality = ndcg(ranked(products(asked, given)), wanted).mean()
                self.sets[name] = {"ids": ids, "states": states, "wanted": wanted, "touched": touched, "embedded": quality}
        tokenizer.enable_truncation(512)
        self.last = jax.jit(self.last_states)
        self.some = jax.jit(best_of)

    def last_states(self, weights, texts):
        if self.student == "head":
            return texts["states"].astype(np.float32) @ weights[MATRIX]
        return hidden(weights, self.config, texts["ids"], (texts["ids"] > 0).astype(np.float32))

    def encoded(self, weights, found, part, terms):
        """Term weights of a collection's queries or documents, only for the given terms."""
        ids, states = found["ids"][part], found["states"][part]
        head, bias = (HEAD_DECODER, HEAD_BIAS) if self.student == "head" else (WORD_EMBEDDINGS, DECODER_BIAS)
        decoder, bias = np.asarray(weights[head])[terms], np.asarray(weights[bias])[terms]
        room = -len(terms) % TERMS
        decoder = np.pad(decoder, ((0, room), (0, 0)))
        rows = np.zeros((len(ids), len(terms)), np.float32)
        lengths = np.array([next(length for length in LENGTHS if len(row) <= length) for row in ids])
        for length in LENGTHS:
            at = np.flatnonzero(lengths == length)
            count = TOKENS // length
            for first in range(0, len(at), count):
                some = at[first:first + count]
                texts = {"ids": np.zeros((count, length), np.int32)}
                for row, number in enumerate(some):
                    texts["ids"][row, :len(ids[number])] = ids[number]
                if states:
                    values, starts = states
                    texts["states"] = np.zeros((count, length, values.shape[1]), np.float16)
                    for row, number in enumerate(some):
                        kept = values[starts[number]:starts[number + 1]]
                        texts["states"][row, :len(kept)] = kept
                hiddens, mask = self.last(weights, texts), (texts["ids"] > 0).astype(np.float32)
                logits = np.concatenate([np.asarray(self.some(hiddens, mask, decoder[begin:begin + TERMS]))
                                         for begin in range(0, len(decoder), TERMS)], 1)[:len(some), :len(terms)]
                rows[some] = np.log1p(np.maximum(logits + bias, 0))
        return rows

    def judge(self, weights):
        """nDCG@10 and the postings that queries touch as a share of the embedded model's, by collection, and the means."""
        report = {}
        for name, found in self.sets.items():
            queries = self.encoded(weights, found, "queries", np.arange(self.vocabulary))
            terms = np.flatnonzero(queries.any(0))
            passages, queries = self.encoded(weights, found, "passages", terms), queries[:, terms]
            touched = float((queries > 0).sum(0) @ (passages > 0).sum(0)) / found["touched"]
            quality = ndcg(ranked(queries @ passages.T), found["wanted"]).mean()
            report[name] = [round(float(quality), 4), round(float(quality - found["embedded"]), 4), round(touched, 3)]
        report["mean"] = [round(float(value), 4) for value in np.mean(list(report.values()), 0)]
        return report
