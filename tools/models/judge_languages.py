"""Judges a multilingual model by a running server: 20 questions over 200 sentences in each of eleven languages.

    python judge_languages.py URL KEY-FILE [SENTENCES]

Sentences are the first 200 test sentences of lingua's language models, crates of the registry (Apache-2.0; the sentences are from web
pages that the University of Leipzig collects, CC BY). They are put into the folder SENTENCES if they are not there. Each question of
`language_questions.json` was written for one sentence, whose line it names, by the language model that developed this, which read the
sentences: mostly in other words, as somebody asks who does not know the sentence.
The indices `judged-…` are made anew. Prints nDCG@10, and how many of the 20 sentences come first, by words (the analyzer of the
language), the embedded models of English, the multilingual model, and its hybrid with words as `linear` has it by default.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from student_texts import Server

CRATES = "1.3.0"
SENTENCES = 200
# Words of Chinese and Japanese are pairs of characters. There is no analyzer of Hindi.
ANALYZERS = {"chinese": "cjk", "japanese": "cjk", "hindi": "standard"}
MODELS = {"sparse": ".elser-2-elasticsearch", "minilm": ".all-minilm-l6-v2-elasticsearch", "multilingual": ".multilingual-e5-small-elasticsearch"}


def fetch(folder, languages):
    """Puts the sentences of each language into a file of the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as project:
        crates = {language: f"lingua-{language}-language-model" for language in languages}
        needs = "\n".join(f'{crate} = "={CRATES}"' for crate in crates.values())
        Path(project, "Cargo.toml").write_text(
            f'[package]\nname = "sentences"\nversion = "0.0.0"\nedition = "2021"\n[lib]\npath = "lib.rs"\n[dependencies]\n{needs}\n[workspace]\n')
        Path(project, "lib.rs").touch()
        subprocess.run(["cargo", "vendor", "-q", "vendor"], cwd=project, check=True, stdout=subprocess.DEVNULL)
        for language, crate in crates.items():
            shutil.copy(Path(project, "vendor", crate, "testdata", "sentences.txt"), folder / f"{language}.txt")


def fill(server, language, sentences):
    index = f"judged-{language}"
    server.call(f"/{index}?ignore_unavailable=true", None, "DELETE")
    text = {"type": "text", "analyzer": ANALYZERS.get(language, language), "copy_to": list(MODELS)}
    fields = {name: {"type": "semantic_text", "inference_id": endpoint} for name, endpoint in MODELS.items()}
    server.call(f"/{index}", {"mappings": {"properties": {"text": text, **fields}}}, "PUT")
    for number, sentence in enumerate(sentences):
        last = number == len(sentences) - 1
        server.call(f"/{index}/_doc/{number}" + ("?refresh=true" if last else ""), {"text": sentence}, "PUT")
    return index


def ways(question):
    """The bodies of a search, by what they search with."""
    return {
        "words": {"query": {"match": {"text": question}}},
        **{name: {"query": {"semantic": {"field": name, "query": question}}} for name in MODELS},
        "hybrid": {"retriever": {"linear": {"query": question, "fields": ["text", "multilingual"]}}},
    }


def main():
    server = Server(sys.argv[1], Path(sys.argv[2]).read_text().strip())
    questions = json.loads((Path(__file__).parent / "language_questions.json").read_text())
    folder = Path(sys.argv[3] if len(sys.argv) > 3 else tempfile.mkdtemp())
    if not all((folder / f"{language}.txt").exists() for language in questions):
        fetch(folder, questions)
    means = {}
    for language, asked in questions.items():
        index = fill(server, language, (folder / f"{language}.txt").read_text().splitlines()[:SENTENCES])
        ranks = {}
        for sentence, question in asked.items():
            for way, body in ways(question).items():
                hits = server.call(f"/{index}/_search?filter_path=hits.hits._id", {"size": 10, **body}).get("hits", {}).get("hits", [])
                found = [hit["_id"] for hit in hits]
                ranks.setdefault(way, []).append(found.index(sentence) + 1 if sentence in found else np.inf)
        row = {way: (1 / np.log2(np.array(places) + 1)).mean() for way, places in ranks.items()}
        for way, score in row.items():
            means.setdefault(way, []).append(score)
        print(f"| {language} | " + " | ".join(f"{score:.3f} ({ranks[way].count(1)})" for way, score in row.items()) + " |", flush=True)
    print("| mean | " + " | ".join(f"{np.mean(scores):.3f}" for scores in means.values()) + " |", "ways: " + ", ".join(means), sep="\n")


if __name__ == "__main__":
    main()
