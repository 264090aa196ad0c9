"""Read .npz, .pt, CSV and JSON files into label and feature tensors."""

from __future__ import annotations

import json
import math
import pickle
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BufferedIOBase, BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import scipy.sparse
import torch
from jaxtyping import Float, Int, Shaped
from pyarrow import csv
from torch import Tensor

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Features
from unalike.errors import MAX_COUNT, UserError, first_line

READ_ERRORS = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    pa.ArrowException,
    pickle.PickleError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
"""Exceptions of readers on truncated files or files of another format."""


@contextmanager
def read_errors(path: Path | str) -> Iterator[None]:
    """Turn exceptions of a reader into a one-line `UserError` that names the file."""
    try:
        yield
    except READ_ERRORS as error:
        raise UserError(f"{path} cannot be read: {first_line(error)}.") from error


MAX_COMPRESSION = 1032
"""The largest ratio of inflated to deflated bytes."""


def check_size(num_values: int, path: Path) -> None:
    """Refuse a header that promises more values than the file can hold."""
    if num_values > MAX_COMPRESSION * path.stat().st_size:
        raise ValueError(f"its header promises {num_values:,} values, too many for it")


def check_compressed(matrix: Any) -> None:
    """Raise if indices or pointers of a CSR or CSC matrix are out of range.

    SciPy's own `check_format` accepts any pointers if the last one is 0.
    """
    indptr, indices = matrix.indptr, matrix.indices
    size = matrix.shape[0 if matrix.format == "csc" else 1]
    if (
        indptr[0] != 0
        or indptr[-1] != len(indices)
        or len(matrix.data) != len(indices)
        or (indptr[1:] < indptr[:-1]).any()
        or (len(indices) and not 0 <= indices.min() <= indices.max() < size)
    ):
        raise ValueError("a sparse matrix has indices or pointers out of range")


NPY_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_npy_header(
    file: IO[bytes] | BufferedIOBase,
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, column-major order and type of the array in a .npy file."""
    version = np.lib.format.read_magic(file)
    if version not in NPY_HEADERS:
        raise ValueError(f"npy version {version}")
    return NPY_HEADERS[version](file)


def read_npz(path: Path, *names: str) -> list[np.ndarray]:
    """The named arrays of a .npz file."""
    with read_errors(path), zipfile.ZipFile(path) as archive:
        return [_read_npy(archive, name, path) for name in names]


def _read_npy(archive: zipfile.ZipFile, name: str, path: Path) -> np.ndarray:
    member = archive.getinfo(f"{name}.npy")
    with archive.open(member) as file:
        shape, _, dtype = read_npy_header(file)
        num_values = math.prod(shape)
        check_size(num_values, path)
        num_bytes = member.file_size - file.tell()
        if not dtype.hasobject and num_bytes != num_values * dtype.itemsize:
            raise ValueError(f"its array '{name}' does not have the shape {shape}")
        file.seek(0)
        return np.lib.format.read_array(file, allow_pickle=False)


def npz_names(path: Path) -> set[str]:
    """The names of the arrays of a .npz file."""
    with read_errors(path), zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            # Raises if the directory of the archive has another name than the member.
            archive.open(name).close()
        return {name.removesuffix(".npy") for name in archive.namelist()}


def read_tensor(path: Path) -> Shaped[Tensor, ...]:
    """A tensor that torch saved, memory-mapped if its format allows that."""
    with read_errors(path):
        tensor = torch.load(
            path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path)
        )
    if not isinstance(tensor, Tensor):
        raise UserError(f"{path} has a {type(tensor).__name__} instead of a tensor.")
    return tensor


def read_table(
    file: Path | BytesIO, *, string_columns: tuple[str, ...] = (), name: str = ""
) -> pa.Table:
    """A CSV file with a header; `string_columns` are not parsed as numbers or dates."""
    types = csv.ConvertOptions(column_types=dict.fromkeys(string_columns, pa.string()))
    with read_errors(name or str(file)):
        return csv.read_csv(file, convert_options=types)


def read_matrix(
    path: Path, dtype: Any = np.int64, *, delimiter: str = ",", skip: int = 0
) -> np.ndarray:
    """A matrix from a CSV file of numbers without a header, gzipped or not."""
    with read_errors(path):
        table = csv.read_csv(
            path,
            read_options=csv.ReadOptions(
                autogenerate_column_names=True, skip_rows=skip
            ),
            parse_options=csv.ParseOptions(delimiter=delimiter),
        )
        matrix = np.empty((table.num_rows, table.num_columns), dtype)
        for index, column in enumerate(table.columns):
            matrix[:, index] = numeric_column(column, dtype)
        return matrix


def read_edge_list(
    file: Path | BytesIO, *, name: str = ""
) -> tuple[Int[Tensor, " ids"], Int[Tensor, " ids"]]:
    """Source and target ids from the two columns of a CSV file with a header."""
    table = read_table(file, name=name)
    with read_errors(name or str(file)):
        source, target = (
            torch.from_numpy(numeric_column(column, np.int64).copy())
            for column in table.columns
        )
    return source, target


def numeric_column(column: pa.ChunkedArray, dtype: Any) -> np.ndarray:
    """A column as a numeric array; only floats may have missing values."""
    if np.issubdtype(dtype, np.floating):
        return column.cast(pa.float64()).to_numpy()
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise ValueError(f"row {row + 1} has a missing number")
    return column.cast(pa.from_numpy_dtype(np.dtype(dtype))).to_numpy()


def read_json(file: Path | BytesIO, *, name: str = "") -> Any:
    """A JSON document."""
    with read_errors(name or str(file)):
        return json.loads(file.read_bytes() if isinstance(file, Path) else file.read())


SPARSE_DENSITY = 0.1
"""Features with a lower density than this are stored as a sparse matrix."""


def label_tensor(column: Any) -> Int[Tensor, " nodes"]:
    """Labels from a row, column or 1-D array; negative and missing ones become -1."""
    values = np.asarray(column)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"labels of the type {values.dtype}")
    values = values.astype(np.float64).ravel()
    if (values > MAX_COUNT).any():
        raise ValueError(f"a label above {MAX_COUNT}")
    is_label = ~np.isnan(values) & (values >= 0)
    labels = np.where(is_label, np.nan_to_num(values), -1)
    return torch.from_numpy(labels.astype(np.int64))


def dense_features(matrix: Any) -> Float[Tensor, "nodes features"]:
    """Features as a dense tensor of 32-bit floats."""
    dense = matrix.toarray() if scipy.sparse.issparse(matrix) else np.asarray(matrix)
    return torch.from_numpy(dense.astype(np.float32, copy=False))


def sparse_or_dense_features(matrix: Any) -> Features:
    """Features as a sparse matrix if most of them are zero, else dense."""
    csr = scipy.sparse.csr_array(matrix, dtype=np.float32)
    is_sparse = csr.nnz < SPARSE_DENSITY * csr.shape[0] * csr.shape[1]
    return Adjacency.from_scipy(csr) if is_sparse else dense_features(matrix)


def multi_hot(
    active: Mapping[Any, list[int]], *, num_nodes: int, num_features: int
) -> Adjacency:
    """0/1 features from lists of those that are 1; ids beyond the nodes are skipped."""
    lists = {
        int(node): columns for node, columns in active.items() if int(node) < num_nodes
    }
    lengths = [len(columns) for columns in lists.values()]
    rows = np.repeat(np.array(list(lists), np.int64), lengths)
    columns = np.concatenate([np.zeros(0, np.int64), *map(np.asarray, lists.values())])
    return Adjacency.from_edges(
        torch.from_numpy(rows),
        torch.from_numpy(columns.astype(np.int64)),
        shape=(num_nodes, num_features),
    )


def one_hot_features(
    codes: Int[np.ndarray, "nodes fields"], num_categories: Sequence[int]
) -> Adjacency:
    """One-hot encoding of the category codes of several fields."""
    num_nodes, num_fields = codes.shape
    columns = codes + np.cumsum([0, *num_categories[:-1]])
    return Adjacency(
        torch.arange(num_nodes + 1) * num_fields,
        torch.from_numpy(columns.astype(np.int32).ravel()),
        sum(num_categories),
    )


def drop_empty_columns(features: Adjacency) -> Adjacency:
    """The same features without the columns that have no nonzero value."""
    used, indices = torch.unique(features.indices, return_inverse=True)
    return Adjacency(features.indptr, indices.int(), len(used), features.values)
