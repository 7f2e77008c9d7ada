#!/usr/bin/env python3
"""Vectors between the programs of this repository and those of the peers' folder.

vectors.py npz PREFIX OUT.npz [ROWS]   PREFIX.{ptr,idx,val} (u32 row pointers, u32 columns, f32 values) to a scipy matrix
vectors.py csr IN.npz PREFIX           the other way round
"""
import sys

import numpy as np
import scipy.sparse as sp

VOCABULARY = 30522

if len(sys.argv) < 4 or sys.argv[1] not in ("npz", "csr"):
    sys.exit(__doc__)
kind, source, target = sys.argv[1:4]
if kind == "npz":
    ptr = np.fromfile(source + ".ptr", "<u4").astype(np.int64)
    rows = int(sys.argv[4]) if len(sys.argv) > 4 else len(ptr) - 1
    if rows >= len(ptr):
        sys.exit(f"{source} has {len(ptr) - 1} rows, not {rows}")
    ptr = ptr[: rows + 1]
    columns = np.fromfile(source + ".idx", "<u4", count=ptr[-1]).astype(np.int32)
    values = np.fromfile(source + ".val", "<f4", count=ptr[-1])
    if len(columns) != ptr[-1] or len(values) != ptr[-1]:
        sys.exit(f"{source} is cut short")
    width = max(VOCABULARY, int(columns.max(initial=-1)) + 1)
    sp.save_npz(target, sp.csr_matrix((values, columns, ptr), shape=(rows, width)), compressed=False)
else:
    matrix = sp.load_npz(source).tocsr()
    matrix.sort_indices()
    matrix.indptr.astype("<u4").tofile(target + ".ptr")
    matrix.indices.astype("<u4").tofile(target + ".idx")
    matrix.data.astype("<f4").tofile(target + ".val")
