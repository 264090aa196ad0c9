"""Raw files opened with care: nothing in them runs, and damage is told by name."""

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
from jaxtyping import Int, Shaped
from pyarrow import csv
from torch import Tensor

from unalike.errors import UserError

DAMAGE = (
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
def blaming(path: Path | str) -> Iterator[None]:
    """Turn whatever a reader raises into one line that names the file."""
    try:
        yield
    except DAMAGE as error:
        raise UserError(f"{path} cannot be read: {brief(error)}.") from error


def brief(error: Exception) -> str:
    """The beginning of what an error says; some quote half a file."""
    told = str(error).strip() or type(error).__name__
    return told.splitlines()[0][:120].rstrip(".")


def read_mat(path: Path, *names: str) -> list[Any]:
    """The named variables of a MATLAB file."""
    with blaming(path), path.open("rb") as file:
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
        blaming(path),
        path.open("rb") as file,
        np.load(file, allow_pickle=False) as held,
    ):
        return [held[name] for name in names]


def names_in(path: Path) -> set[str]:
    """The names of the arrays of a .npz file."""
    with blaming(path), zipfile.ZipFile(path) as archive:
        return {name.removesuffix(".npy") for name in archive.namelist()}


def read_tensor(path: Path) -> Shaped[Tensor, "..."]:
    """A tensor that torch saved, mapped where its format allows that."""
    with blaming(path):
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
    with blaming(name or str(file)):
        return csv.read_csv(file, convert_options=types)


def read_numbers(
    path: Path, dtype: Any = np.int64, *, delimiter: str = ",", skip: int = 0
) -> np.ndarray:
    """A CSV file of numbers without a header, gzipped or not, as a matrix."""
    with blaming(path):
        table = csv.read_csv(
            path,
            read_options=csv.ReadOptions(
                autogenerate_column_names=True, skip_rows=skip
            ),
            parse_options=csv.ParseOptions(delimiter=delimiter),
        )
        matrix = np.empty((table.num_rows, table.num_columns), dtype)
        for place, column in enumerate(table.columns):
            matrix[:, place] = as_numbers(column, dtype)
        return matrix


def read_pairs(
    file: Path | BytesIO, *, name: str = ""
) -> tuple[Int[Tensor, " ids"], Int[Tensor, " ids"]]:
    """The ends of edges, from the two columns of a CSV file with a header."""
    table = read_table(file, name=name)
    with blaming(name or str(file)):
        source, target = (
            torch.from_numpy(as_numbers(column, np.int64).copy())
            for column in table.columns
        )
    return source, target


def as_numbers(column: pa.ChunkedArray, dtype: Any) -> np.ndarray:
    """A column as numbers; only floats may have gaps."""
    if np.issubdtype(dtype, np.floating):
        return column.cast(pa.float64()).to_numpy()
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise ValueError(f"row {row + 1} of its numbers lacks one")
    return column.cast(pa.from_numpy_dtype(np.dtype(dtype))).to_numpy()


def read_json(file: Path | BytesIO, *, name: str = "") -> Any:
    """A JSON document."""
    with blaming(name or str(file)):
        return json.loads(file.read_bytes() if isinstance(file, Path) else file.read())
