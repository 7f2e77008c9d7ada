"""Writes the graphs that ONNX Runtime runs of a model whose weights are bytes:

    dense_graphs.py MODEL.onnx FP32.onnx INT8.onnx

FP32 has the same numbers as floats, so that nothing is multiplied back while it runs; INT8 is what ONNX Runtime's own dynamic
quantisation makes of that, with a scale for each output.
"""

import os
import sys

# It reports to its maker unless told not to before it is loaded.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import numpy as np
import onnx
from onnx import numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic


def floats(model):
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    nodes, made, gone = [], [], set()
    for node in model.graph.node:
        if node.op_type == "DequantizeLinear":
            axis = next(attribute.i for attribute in node.attribute if attribute.name == "axis")
            numbers, scales = (numpy_helper.to_array(weights[name]).astype(np.float32) for name in node.input)
            made.append(numpy_helper.from_array(numbers * np.expand_dims(scales, 1 - axis), node.output[0]))
            gone.update(node.input)
        elif node.op_type == "Cast" and node.input[0] in weights:
            made.append(numpy_helper.from_array(numpy_helper.to_array(weights[node.input[0]]).astype(np.float32), node.output[0]))
            gone.add(node.input[0])
        else:
            nodes.append(node)
    kept = [tensor for tensor in model.graph.initializer if tensor.name not in gone]
    del model.graph.node[:], model.graph.initializer[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(kept + made)
    return model


source, fp32, int8 = sys.argv[1:]
onnx.save(floats(onnx.load(source)), fp32)
quantize_dynamic(fp32, int8, per_channel=True, weight_type=QuantType.QInt8)
