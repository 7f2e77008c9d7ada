"""BERT in numpy float64: the reference that the ONNX files and the Rust encoder are held against."""

from math import erf

import numpy as np

_erf = np.vectorize(erf)


def gelu(x):
    return 0.5 * x * (1.0 + _erf(x / np.sqrt(2.0)))


class BertReference:
    def __init__(self, weights, config, *, prefix, gamma, beta):
        self.weights = {name: np.asarray(array, np.float64) for name, array in weights.items()
                        if array.dtype.kind == "f"}
        self.config, self.prefix, self.gamma, self.beta = config, prefix, gamma, beta

    def layer_norm(self, x, name):
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) / np.sqrt(variance + 1e-12) * self.weights[f"{name}.{self.gamma}"] + self.weights[f"{name}.{self.beta}"]

    def linear(self, x, name):
        return x @ self.weights[name + ".weight"].T + self.weights[name + ".bias"]

    def hidden(self, ids):
        """Last hidden states [tokens, width] of one text without padding."""
        base = self.prefix + "embeddings."
        w, heads = self.weights, self.config["num_attention_heads"]
        x = w[base + "word_embeddings.weight"][ids] + w[base + "position_embeddings.weight"][: len(ids)]
        x = self.layer_norm(x + w[base + "token_type_embeddings.weight"][0], base + "LayerNorm")
        width = x.shape[-1]
        split = lambda y: y.reshape(len(ids), heads, width // heads).transpose(1, 0, 2)
        for number in range(self.config["num_hidden_layers"]):
            layer = f"{self.prefix}encoder.layer.{number}."
            q, k, v = (split(self.linear(x, f"{layer}attention.self.{part}")) for part in ("query", "key", "value"))
            scores = q @ k.transpose(0, 2, 1) / np.sqrt(width / heads)
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            context = (scores / scores.sum(-1, keepdims=True)) @ v
            context = context.transpose(1, 0, 2).reshape(len(ids), width)
            x = self.layer_norm(self.linear(context, layer + "attention.output.dense") + x, layer + "attention.output.LayerNorm")
            inner = gelu(self.linear(x, layer + "intermediate.dense"))
            x = self.layer_norm(self.linear(inner, layer + "output.dense") + x, layer + "output.LayerNorm")
        return x

    def mean_pooled(self, ids):
        """Mean of the hidden states, length one."""
        pooled = self.hidden(ids).mean(0)
        return pooled / np.linalg.norm(pooled)
