"""Read .mat, .npz, .pt, CSV, JSON safely; raw columns to label and feature tensors."""

from __future__ import annotations

import json
import pickle
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.io
import scipy.sparse
import torch
from jaxtyping import Float, Int, Shaped
from pyarrow import csv
from torch import Tensor

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Features
from unalike.errors import UserError

# Raw files opened with care: nothing in them runs, and damage is told by name.


READ_ERRORS = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    NotImplementedError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    pa.ArrowException,
    pickle.PickleError,
    scipy.io.matlab.MatReadError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
"""What readers raise on files that are cut short or of another format."""


@contextmanager
def read_errors(path: Path | str) -> Iterator[None]:
    """Turn whatever a reader raises into one line that names the file."""
    try:
        yield
    except READ_ERRORS as error:
        raise UserError(f"{path} cannot be read: {first_line(error)}.") from error


def first_line(error: Exception) -> str:
    """The beginning of what an error says; some quote half a file."""
    told = str(error).strip() or type(error).__name__
    return told.splitlines()[0][:120].rstrip(".")


def read_mat(path: Path, *names: str) -> list[Any]:
    """The named variables of a MATLAB file."""
    with read_errors(path), path.open("rb") as file:
        held = scipy.io.loadmat(file, variable_names=names)
    if missing := [name for name in names if name not in held]:
        raise UserError(f"{path} holds no '{missing[0]}'.")
    return [_array(held[name]) for name in names]


def _array(held: Any) -> Any:
    """scipy's newer kind of sparse matrix in place of its older one, without zeros."""
    if not scipy.sparse.issparse(held):
        return held
    rows = scipy.sparse.csr_array(held)
    rows.eliminate_zeros()
    return rows


def read_npz(path: Path, *names: str) -> list[np.ndarray]:
    """The named arrays of a .npz file."""
    # numpy leaves a file open if it fails on a path, so it gets an open file.
    with (
        read_errors(path),
        path.open("rb") as file,
        np.load(file, allow_pickle=False) as held,
    ):
        return [held[name] for name in names]


def npz_names(path: Path) -> set[str]:
    """The names of the arrays of a .npz file."""
    with read_errors(path), zipfile.ZipFile(path) as archive:
        return {name.removesuffix(".npy") for name in archive.namelist()}


def read_tensor(path: Path) -> Shaped[Tensor, "..."]:
    """A tensor that torch saved, mapped where its format allows that."""
    with read_errors(path):
        held = torch.load(
            path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path)
        )
    if not isinstance(held, Tensor):
        raise UserError(f"{path} holds no tensor but a {type(held).__name__}.")
    return held


def read_table(
    file: Path | BytesIO, *, texts: tuple[str, ...] = (), name: str = ""
) -> pa.Table:
    """A CSV file with a header; the columns in `texts` stay text."""
    types = csv.ConvertOptions(column_types=dict.fromkeys(texts, pa.string()))
    with read_errors(name or str(file)):
        return csv.read_csv(file, convert_options=types)


def read_matrix(
    path: Path, dtype: Any = np.int64, *, delimiter: str = ",", skip: int = 0
) -> np.ndarray:
    """A CSV file of numbers without a header, gzipped or not, as a matrix."""
    with read_errors(path):
        table = csv.read_csv(
            path,
            read_options=csv.ReadOptions(
                autogenerate_column_names=True, skip_rows=skip
            ),
            parse_options=csv.ParseOptions(delimiter=delimiter),
        )
        matrix = np.empty((table.num_rows, table.num_columns), dtype)
        for place, column in enumerate(table.columns):
            matrix[:, place] = numeric_column(column, dtype)
        return matrix


def read_edge_list(
    file: Path | BytesIO, *, name: str = ""
) -> tuple[Int[Tensor, " ids"], Int[Tensor, " ids"]]:
    """The ends of edges, from the two columns of a CSV file with a header."""
    table = read_table(file, name=name)
    with read_errors(name or str(file)):
        source, target = (
            torch.from_numpy(numeric_column(column, np.int64).copy())
            for column in table.columns
        )
    return source, target


def numeric_column(column: pa.ChunkedArray, dtype: Any) -> np.ndarray:
    """A column as numbers; only floats may have gaps."""
    if np.issubdtype(dtype, np.floating):
        return column.cast(pa.float64()).to_numpy()
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise ValueError(f"row {row + 1} of its numbers lacks one")
    return column.cast(pa.from_numpy_dtype(np.dtype(dtype))).to_numpy()


def read_json(file: Path | BytesIO, *, name: str = "") -> Any:
    """A JSON document."""
    with read_errors(name or str(file)):
        return json.loads(file.read_bytes() if isinstance(file, Path) else file.read())


# Columns: what raw files hold of each node, as labels and as features.


SPARSE_DENSITY = 0.1
"""Features with fewer entries than this share are kept sparse."""


def label_tensor(column: Any) -> Int[Tensor, " nodes"]:
    """Classes from a row, a column or a plain array; -1 and gaps are unknown."""
    numbers = np.asarray(column, np.float64).ravel()
    known = ~np.isnan(numbers) & (numbers >= 0)
    return torch.from_numpy(
        np.where(known, np.nan_to_num(numbers), -1).astype(np.int64)
    )


def dense_features(matrix: Any) -> Float[Tensor, "nodes features"]:
    """Features as 32-bit floats, sparse ones filled in."""
    full = matrix.toarray() if scipy.sparse.issparse(matrix) else np.asarray(matrix)
    return torch.from_numpy(full.astype(np.float32, copy=False))


def sparse_or_dense_features(matrix: Any) -> Features:
    """Features, sparse if most of them are zero."""
    rows = scipy.sparse.csr_array(matrix, dtype=np.float32)
    thin = rows.nnz < SPARSE_DENSITY * rows.shape[0] * rows.shape[1]
    return Adjacency.from_scipy(rows) if thin else dense_features(matrix)


def multi_hot(
    contents: dict[str, list[int]], *, num_nodes: int, width: int
) -> Adjacency:
    """Rows of 0/1 features from lists of those that are 1; other nodes are skipped."""
    kept = {
        int(node): active for node, active in contents.items() if int(node) < num_nodes
    }
    lengths = [len(active) for active in kept.values()]
    nodes = np.repeat(np.array(list(kept), np.int64), lengths)
    active = np.concatenate([np.zeros(0, np.int64), *map(np.asarray, kept.values())])
    return Adjacency.from_edges(
        torch.from_numpy(nodes),
        torch.from_numpy(active.astype(np.int64)),
        shape=(num_nodes, width),
    )


def drop_empty_columns(rows: Adjacency) -> Adjacency:
    """The same rows without the columns that have no entry."""
    used, columns = torch.unique(rows.indices, return_inverse=True)
    return Adjacency(rows.indptr, columns.int(), len(used), rows.values)
