#!/usr/bin/env python3
"""word_engines.py ENGINE INPUT.json OUT [--passes N]

BM25 with k1 1.2 and b 0.75 in bm25s or tantivy: one thread, one question at a time, any of its words, ten hits. INPUT holds the texts and
the questions, whose words are separated by spaces. Prints one JSON object; OUT gets the numbers of the texts that were found."""
import argparse
import json
import time

from timing import K, say, timed

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
for name in ("engine", "input", "out"):
    p.add_argument(name)
p.add_argument("--passes", type=int, default=2)
a = p.parse_args()
with open(a.input) as file:
    given = json.load(file)
texts, questions = given["texts"], given["questions"]


def with_bm25s():
    import bm25s

    # Its fastest backend, where it is installed.
    try:
        import numba  # noqa: F401

        backend = "numba"
    except ImportError:
        backend = "numpy"
    index = bm25s.BM25(method="lucene", k1=1.2, b=0.75, backend=backend)
    index.index([text.split() for text in texts], show_progress=False)

    def search(question):
        # No known word is an error.
        known = [word for word in question if word in index.vocab_dict]
        return index.retrieve([known], k=K, show_progress=False, n_threads=1)[0][0] if known else []

    return search, [question.split() for question in questions], {"backend": backend}


def with_tantivy():
    import tantivy

    schema = tantivy.SchemaBuilder()
    schema.add_unsigned_field("id", stored=True)
    schema.add_text_field("text")
    schema = schema.build()
    index = tantivy.Index(schema)
    writer = index.writer(heap_size=1 << 30, num_threads=1)
    for number, text in enumerate(texts):
        writer.add_document(tantivy.Document(id=number, text=text))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def search(words):
        any_word = [(tantivy.Occur.Should, tantivy.Query.term_query(schema, "text", word)) for word in words]
        hits = searcher.search(tantivy.Query.boolean_query(any_word), K, count=False).hits
        return [searcher.doc(address)["id"][0] for _, address in hits]

    return search, [question.split() for question in questions], {"segments": searcher.num_segments}


begun = time.perf_counter()
search, asked, settings = {"bm25s": with_bm25s, "tantivy": with_tantivy}[a.engine]()
say(build_s=time.perf_counter() - begun, settings=settings, **timed(search, asked, a.passes, a.out))
