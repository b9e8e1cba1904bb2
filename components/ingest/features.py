"""Features from a file of their own: a scipy sparse `.npz`, or a dense `.npy` or `.npz`."""

from typing import Any

import numpy as np
import scipy.sparse

from .._files import InputError, local_file, suffix
from .tables import load_npz


def read_features(uri: str, num_nodes: int) -> Any:
    """Reads a matrix with one row a node.

    Args:
        uri: the file.
        num_nodes: rows needed.

    Returns:
        float32 [num_nodes, F], a scipy CSR matrix when the file is sparse.

    Raises:
        InputError: another number of rows, another type, or a value that is not finite.
    """
    if suffix(uri) not in (".npz", ".npy"):
        raise InputError(f"{uri}: unknown format of features; allowed: .npz (scipy sparse, or numpy), .npy")
    arrays = load_npz(uri)
    if "format" in arrays and "shape" in arrays:
        with local_file(uri) as path:
            matrix: Any = scipy.sparse.load_npz(path).tocsr()
    elif len(arrays) == 1:
        (matrix,) = arrays.values()
    else:
        raise InputError(
            f"{uri}: {len(arrays)} arrays ({', '.join(arrays)}); one, or a scipy sparse matrix, is needed"
        )
    if matrix.ndim != 2:
        raise InputError(
            f"{uri}: shape {list(matrix.shape)}; [number of nodes, number of features] is needed"
        )
    if matrix.dtype.kind not in "fiub":
        raise InputError(f"{uri}: values of type {matrix.dtype}; numbers are needed")
    if matrix.shape[0] != num_nodes:
        raise InputError(
            f"{uri}: {matrix.shape[0]} rows but there are {num_nodes} nodes; one row a node is needed"
        )
    return as_float32(matrix, uri)


def as_float32(matrix: Any, place: str) -> Any:
    """Returns a matrix [n, F], dense or CSR, as float32.

    Raises:
        InputError: no column, or a value that is not finite (as float32); `place` begins the message.
    """
    if matrix.shape[1] == 0:
        raise InputError(f"{place}: no feature column; at least one is needed")
    with np.errstate(over="ignore"):
        single = matrix.astype(np.float32, copy=False)
    values = single.data if scipy.sparse.issparse(single) else single
    if not np.isfinite(values).all():
        row, column = (int(found[0]) for found in _not_finite(single))
        raise InputError(f"{place}: row {row}, column {column} is not a finite number (of 32 bits)")
    return single


def _not_finite(matrix: Any) -> Any:
    if scipy.sparse.issparse(matrix):
        entries = matrix.tocoo()
        wrong = ~np.isfinite(entries.data)
        return entries.row[wrong], entries.col[wrong]
    return np.nonzero(~np.isfinite(matrix))
