"""Makes the ONNX graph of a BERT encoder from its checkpoint, without torch, for ONNX Runtime to compute with.

The graph maps `input_ids` and `attention_mask` (int64, [batch, tokens]) to the last hidden states
(float32, [batch, tokens, width]), optionally after BERT's masked-language-model transform.
"""

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper


class BertGraph:
    """Collects the nodes and weights of one graph."""

    def __init__(self, weights, config, *, prefix, gamma, beta):
        self.weights = weights
        self.config = config
        self.prefix = prefix
        self.gamma = gamma
        self.beta = beta
        self.nodes = []
        self.initializers = {}

    def constant(self, name, array):
        """Adds an initializer once."""
        if name not in self.initializers:
            self.initializers[name] = numpy_helper.from_array(np.ascontiguousarray(array), name)
        return name

    def scalar(self, name, value):
        return self.constant(name, np.float32(value))

    def node(self, operator, inputs, output, **attributes):
        self.nodes.append(helper.make_node(operator, inputs, [output], name=output, **attributes))
        return output

    def linear(self, x, name, output):
        weight = self.constant(name + ".weight_transposed", self.weights[name + ".weight"].T)
        product = self.node("MatMul", [x, weight], output + "_product")
        return self.node("Add", [product, self.constant(name + ".bias", self.weights[name + ".bias"])], output)

    def layer_norm(self, x, name, output):
        scale = self.constant(f"{name}.{self.gamma}", self.weights[f"{name}.{self.gamma}"])
        shift = self.constant(f"{name}.{self.beta}", self.weights[f"{name}.{self.beta}"])
        return self.node("LayerNormalization", [x, scale, shift], output, axis=-1, epsilon=1e-12)

    def gelu(self, x, output):
        scaled = self.node("Div", [x, self.scalar("sqrt_two", np.sqrt(2.0))], output + "_scaled")
        erf = self.node("Erf", [scaled], output + "_erf")
        shifted = self.node("Add", [erf, self.scalar("one", 1.0)], output + "_shifted")
        product = self.node("Mul", [x, shifted], output + "_product")
        return self.node("Mul", [product, self.scalar("half", 0.5)], output)

    def embeddings(self):
        """Sum of word, position and (all zero) token type embeddings, normalised."""
        base = self.prefix + "embeddings."
        words = self.constant(base + "word_embeddings.weight", self.weights[base + "word_embeddings.weight"])
        # The token type is always 0, so its embedding folds into the positions; an embedded model has done that.
        types = self.weights.get(base + "token_type_embeddings.weight", [np.float32(0)])
        positions = self.constant("positions", self.weights[base + "position_embeddings.weight"] + types[0])
        word = self.node("Gather", [words, "input_ids"], "word_embedding")
        shape = self.node("Shape", ["input_ids"], "input_shape")
        index = lambda name, value: self.constant(name, np.array([value], np.int64))
        length = self.node("Slice", [shape, index("index_1", 1), index("index_2", 2)], "length")
        position = self.node("Slice", [positions, index("index_0", 0), length, index("axis_0", 0)], "position_embedding")
        total = self.node("Add", [word, position], "embedding")
        return self.layer_norm(total, base + "LayerNorm", "embedding_normalised")

    def attention_bias(self):
        """0 for tokens, a large negative number for padding, broadcast over heads and queries."""
        mask = self.node("Cast", ["attention_mask"], "mask", to=TensorProto.FLOAT)
        axes = self.constant("axes_1_2", np.array([1, 2], np.int64))
        wide = self.node("Unsqueeze", [mask, axes], "mask_wide")
        padding = self.node("Sub", [self.scalar("one", 1.0), wide], "padding")
        return self.node("Mul", [padding, self.scalar("large_negative", -10000.0)], "attention_bias")

    def layer(self, x, number, bias):
        base = f"{self.prefix}encoder.layer.{number}."
        out = f"layer{number}_"
        heads, width = self.config["num_attention_heads"], self.config["hidden_size"]
        split = self.constant("split_heads", np.array([0, 0, heads, width // heads], np.int64))
        join = self.constant("join_heads", np.array([0, 0, width], np.int64))

        def heads_of(part, order):
            projected = self.linear(x, f"{base}attention.self.{part}", out + part)
            shaped = self.node("Reshape", [projected, split], f"{out}{part}_heads")
            return self.node("Transpose", [shaped], f"{out}{part}_ordered", perm=order)

        query = heads_of("query", [0, 2, 1, 3])
        key = heads_of("key", [0, 2, 3, 1])
        value = heads_of("value", [0, 2, 1, 3])
        scores = self.node("MatMul", [query, key], out + "scores")
        scores = self.node("Div", [scores, self.scalar("sqrt_head_width", np.sqrt(width / heads))], out + "scores_scaled")
        scores = self.node("Add", [scores, bias], out + "scores_masked")
        attention = self.node("Softmax", [scores], out + "attention", axis=-1)
        context = self.node("MatMul", [attention, value], out + "context")
        context = self.node("Transpose", [context], out + "context_ordered", perm=[0, 2, 1, 3])
        context = self.node("Reshape", [context, join], out + "context_joined")
        attended = self.linear(context, base + "attention.output.dense", out + "attended")
        x = self.layer_norm(self.node("Add", [attended, x], out + "attention_residual"),
                            base + "attention.output.LayerNorm", out + "attention_output")
        inner = self.gelu(self.linear(x, base + "intermediate.dense", out + "intermediate"), out + "intermediate_gelu")
        outer = self.linear(inner, base + "output.dense", out + "output")
        return self.layer_norm(self.node("Add", [outer, x], out + "output_residual"),
                               base + "output.LayerNorm", out + "output_normalised")

    def build(self, *, output, mlm_transform=None):
        """Finishes the graph; `output` names the hidden states."""
        x = self.embeddings()
        bias = self.attention_bias()
        for number in range(self.config["num_hidden_layers"]):
            x = self.layer(x, number, bias)
        if mlm_transform:
            dense = self.gelu(self.linear(x, mlm_transform + "dense", "transform"), "transform_gelu")
            x = self.layer_norm(dense, mlm_transform + "LayerNorm", "transform_normalised")
        self.node("Identity", [x], output)
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "tokens"])
                  for name in ("input_ids", "attention_mask")]
        outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", "tokens", self.config["hidden_size"]])]
        graph = helper.make_graph(self.nodes, "bert", inputs, outputs, list(self.initializers.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="sparrow")
        model.ir_version = 8
        checker.check_model(model)
        return model
