"""Writes what ONNX Runtime's own dynamic quantisation makes of a graph, with a scale for each output:

    quantised_graph.py FP32.onnx INT8.onnx
"""

import os
import sys

# It reports to its maker unless told not to before it is loaded.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

from onnxruntime.quantization import QuantType, quantize_dynamic

source, target = sys.argv[1:]
quantize_dynamic(source, target, per_channel=True, weight_type=QuantType.QInt8)
