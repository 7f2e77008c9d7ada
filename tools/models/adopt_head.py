"""Writes the package of the sparse head on the embedded dense model from what student_gpu.py has trained.

    python adopt_head.py TRAINED TEXTS PASSAGES QUESTIONS

TRAINED is the folder that student_gpu.py wrote: `head.npz`, and `log.jsonl`, which is copied into the repository. TEXTS is what
student_texts.py wrote: its passages say how rare a token is. PASSAGES and QUESTIONS are the texts from which head_basis.py takes its
covariances. The format is described in docs/inference.md.
"""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save

import head_basis
from build_models import DENSE, ROOT, TRANSFORM, fingerprint, in_bytes, truncating_tokenizer, write_checksums, write_json
from student_bundle import PARTS
from student_gpu import SEED as TRAINING_SEED
from student_gpu import WEIGHTS
from student_texts import SEED as TEXTS_SEED

HEAD = ROOT / "packages" / "model-splade-minilm-l6"
LOG = ROOT / "tools" / "models" / "logs" / "head.jsonl"
TEACHERS = {
    "bge": {"name": "bge-small-en-v1.5", "licence": "MIT"},
    "e5": {"name": "e5-small-v2", "licence": "MIT"},
    "minilm": {"name": "all-MiniLM-L6-v2", "licence": "Apache-2.0"},
    "words": {"name": "BM25"},
    "embedded": {"name": "the sparse model of @sparrow-search/model-splade-tiny"},
}
# What student_texts.py draws from. Only texts under free licences are trained on.
TEXTS = [
    {"what": "questions of Natural Questions", "licence": "CC BY-SA 3.0", "by": "Google"},
    {"what": "paragraphs of SQuAD's training part, from Wikipedia", "licence": "CC BY-SA 4.0", "by": "P. Rajpurkar et al."},
    {"what": "training claims of SciFact", "licence": "CC BY 4.0", "by": "D. Wadden et al."},
    {"what": "abstracts of SciFact, from S2ORC", "licence": "ODC-By 1.0", "by": "Allen Institute for AI"},
    {"what": "words, glosses and examples of WordNet 3.0", "licence": "WordNet licence", "by": "Princeton University"},
    {"what": "documentation of the Windows API", "licence": "CC BY 4.0", "by": "Microsoft"},
    {"what": "articles about films, from Wikipedia", "licence": "CC BY-SA", "by": "the authors of Wikipedia"},
    {"what": "novels", "licence": "public domain"},
]


# A token's own weight grows from 0 to 1 between these logarithms of its inverse document frequency. Both, and the 1, are what served the
# development sets best (docs/design/encoder/student.md).
RARE = (3.5, 9.0)
# What dense scores count beside the head's in one clause, as a multiple of what they count beside the embedded model's; as above.
DENSE_FACTOR = 0.5
# Texts that are tokenized at once.
BATCH = 4096


def token_weights(path, terms):
    """What a token of a text adds to the weight of the term that it is: nothing if it is frequent, up to 1 if it is rare."""
    texts = [passage["text"] for passage in json.loads(path.read_text())["passages"]]
    tokenizer, frequencies = truncating_tokenizer((DENSE / "tokenizer.json").read_text()), np.zeros(terms)
    for first in range(0, len(texts), BATCH):
        for encoded in tokenizer.encode_batch(texts[first:first + BATCH]):
            frequencies[sorted(set(encoded.ids))] += 1
    least, most = RARE
    weights = ((np.log((len(texts) + 1) / (frequencies + 1)) - least) / (most - least)).clip(0, 1)
    # [CLS], [UNK] and the like stand for no word.
    weights[list(tokenizer.get_added_tokens_decoder())] = 0
    return weights.astype(np.float32)


def in_full_names(weights, layers):
    """The weights of a head in Transformers' names; its layer stands above those of the dense model."""
    parts, found = {short: part for part, short in PARTS.items()}, {"cls.predictions.bias": weights.pop("bias")}
    for name, array in weights.items():
        first, *rest = name.split(".")
        end = {"w": "weight", "b": "bias"}[rest[-1]]
        if first == "transform":
            found[f"{TRANSFORM}{'LayerNorm' if len(rest) == 2 else 'dense'}.{end}"] = array
        else:
            found[f"bert.encoder.layer.{layers + int(first)}.{parts[rest[0]]}.{end}"] = array
    return found


def main(trained, texts, passages, questions):
    config = json.loads((DENSE / "config.json").read_text())
    layers = config["num_hidden_layers"]
    with np.load(trained / "head.npz") as stored:
        weights = in_full_names({name: stored[name].astype(np.float32) for name in stored.files}, layers)
    weights["token_weights"] = token_weights(texts, len(weights["cls.predictions.bias"]))
    HEAD.mkdir(exist_ok=True)
    contiguous = {name: np.ascontiguousarray(array) for name, array in in_bytes(weights).items()}
    (HEAD / "model.safetensors").write_bytes(save(contiguous, metadata={"format": "pt"}))
    write_json(HEAD / "config.json", {**config, "architectures": ["BertForMaskedLM"], "num_hidden_layers": layers + 1})
    write_json(HEAD / "sparrow.json", {"kind": "sparse_mlm", "pooling": "splade", "language": "en", "dense_factor": DENSE_FACTOR,
                                       "trunk": {"model": ".all-minilm-l6-v2", "fingerprint": fingerprint(DENSE)}})
    LOG.parent.mkdir(exist_ok=True)
    shutil.copy(trained / "log.jsonl", LOG)
    steps = [json.loads(line) for line in LOG.read_text().splitlines()]
    write_checksums(HEAD, {
        "licence": "Apache-2.0",
        "trained": {
            "by": "tools/models/student_texts.py, student_bundle.py, student_gpu.py and adopt_head.py of Sparrow",
            "on": "the states of @sparrow-search/model-minilm-l6, which stay as they are", "log": "tools/models/logs/head.jsonl",
            "steps": {line["task"]: line["steps"] for line in steps if line.get("student") == "head" and "steps" in line},
            "student": "the moving average of the weights", "seeds": {"student_texts.py": TEXTS_SEED, "student_gpu.py": TRAINING_SEED},
            "teachers": [{**teacher, "weights": {kind: of_kind[key] for kind, of_kind in WEIGHTS.items()}} for key, teacher in TEACHERS.items()],
            "texts": TEXTS,
        },
    })
    head_basis.main(HEAD, passages, questions)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
