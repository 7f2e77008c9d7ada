#!/usr/bin/env python3
"""truth.py TRUTH OUT.npz   exact answers (TRUTH.ids, TRUTH.scores, 100 a question) in the form of the peers' ground_truth.py"""
import sys

import numpy as np

truth, out = sys.argv[1:3]
ids = np.fromfile(truth + ".ids", np.int32).reshape(-1, 100)
scores = np.fromfile(truth + ".scores", np.float32).reshape(-1, 100)
np.savez(out, ids=ids, scores=scores)
