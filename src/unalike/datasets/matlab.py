"""Read numeric arrays from MATLAB 5 files (.mat), without native code.

A file is a list of elements: a tag with type and size, then the data. An array is an
element of elements: flags, shape, name and values, often deflated as a whole. SciPy's
reader is not used here because damaged files make it crash the process.
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from unalike.datasets.readers import check_compressed, check_size, read_errors
from unalike.errors import UserError

HEADER_BYTES = 128
BYTE_ORDERS = {b"IM": "<", b"MI": ">"}
ELEMENT_TYPES = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
"""NumPy types of the values of an element."""
MATRIX, COMPRESSED = 14, 15
CLASSES = {1: "cell", 2: "struct", 3: "object", 4: "char", 16: "function", 17: "opaque"}
"""Names of array classes that hold no numbers."""
SPARSE = 5
NUMERIC = range(SPARSE, 16)
IS_COMPLEX = 1 << 11
CHUNK = 1 << 20


def read_mat(path: Path, *names: str) -> list[Any]:
    """The named numeric variables of a MATLAB file, sparse ones as `csr_array`."""
    variables: dict[str, Any] = {}
    with read_errors(path), path.open("rb") as file:
        mat_file = MatFile(file)
        for header, source in mat_file.arrays():
            if header.name in names and header.name not in variables:
                header.check(path)
                variables[header.name] = mat_file.read_values(header, source)
    if missing := [name for name in names if name not in variables]:
        raise UserError(f"{path} has no variable '{missing[0]}'.")
    return [variables[name] for name in names]


@dataclass
class ArrayHeader:
    """The name, shape and kind of an array."""

    name: str
    shape: tuple[int, ...]
    array_class: int
    is_complex: bool

    def check(self, path: Path) -> None:
        """Refuse arrays of other kinds than real numbers, and impossible shapes."""
        if self.is_complex or self.array_class not in NUMERIC:
            other = CLASSES.get(self.array_class, "unknown class")
            kind = "complex" if self.is_complex else other
            raise ValueError(
                f"its variable '{self.name}' is a {kind} in place of numbers"
            )
        # Only a sparse matrix allocates by its shape: pointers of rows and columns.
        check_size(sum(self.shape), path)


class Source:
    """The bytes of a file, of which elements are read one after the other."""

    def __init__(self, file: BufferedIOBase, size: int) -> None:
        self.file = file
        self.left = size

    def read(self, size: int) -> bytearray:
        """Exactly `size` bytes."""
        if size > self.left:
            raise EOFError("it ends early")
        result = bytearray(size)
        self.left -= self.file.readinto(result)
        return result

    def check_end(self) -> None:
        """Raise unless the array ends here."""
        if self.left:
            raise ValueError("an array is shorter than its header says")


class Inflater(Source):
    """The inflated bytes of a deflated element."""

    def __init__(self, file: BufferedIOBase, size: int) -> None:
        super().__init__(file, size)
        self.stream = zlib.decompressobj()

    def read(self, size: int) -> bytearray:
        result = bytearray()
        while len(result) < size:
            chunk = self._deflated()
            inflated = self.stream.decompress(chunk, size - len(result))
            if not chunk and not inflated:
                raise EOFError("a compressed array ends early")
            result += inflated
        return result

    def _deflated(self) -> bytes | bytearray:
        return self.stream.unconsumed_tail or super().read(min(self.left, CHUNK))

    def check_end(self) -> None:
        """Raise unless the stream ends here with the right checksum."""
        while chunk := self._deflated():
            if self.stream.eof or self.stream.decompress(chunk, CHUNK):
                raise ValueError("a compressed array is longer than its header says")
        if not self.stream.eof:
            raise EOFError("a compressed array ends early")


class MatFile:
    """The arrays of an open MATLAB 5 file."""

    def __init__(self, file: BufferedIOBase) -> None:
        self.file = file
        self.num_bytes = file.seek(0, os.SEEK_END)
        file.seek(0)
        header = file.read(HEADER_BYTES)
        if header.startswith(b"MATLAB 7.3"):
            raise ValueError("it is of MATLAB 7.3; save it with -v7")
        if len(header) < HEADER_BYTES or header[126:] not in BYTE_ORDERS:
            raise ValueError("it is not a MATLAB 5 file")
        self.order = BYTE_ORDERS[header[126:]]

    def arrays(self) -> Iterator[tuple[ArrayHeader, Source]]:
        """The header of each array, and what its values are read from."""
        position = HEADER_BYTES
        while position < self.num_bytes:
            self.file.seek(position)
            source = Source(self.file, self.num_bytes - position)
            kind, size, data = self._tag(source)
            if data is not None or size > source.left:
                raise EOFError("it ends early")
            position = self.file.tell() + size
            source = (Inflater if kind == COMPRESSED else Source)(self.file, size)
            if kind == COMPRESSED:
                kind, _, _ = self._tag(source)
            if kind == MATRIX:
                yield self._array_header(source), source

    def _tag(self, source: Source) -> tuple[int, int, bytearray | None]:
        """Type and size of an element, and its data if they are inside the tag."""
        tag = source.read(8)
        kind, size = map(int, np.frombuffer(tag, f"{self.order}u4"))
        if kind <= 0xFFFF:
            return kind, size, None
        kind, size = kind & 0xFFFF, kind >> 16
        if size > 4:
            raise ValueError("a short element has more than 4 bytes")
        return kind, size, tag[4 : 4 + size]

    def _values(self, source: Source) -> np.ndarray:
        """The values of the next element, in the type in which they are stored."""
        kind, size, data = self._tag(source)
        if kind not in ELEMENT_TYPES:
            raise ValueError(f"an element has type {kind} in place of numbers")
        dtype = np.dtype(self.order + ELEMENT_TYPES[kind])
        if size % dtype.itemsize:
            raise ValueError("an element ends inside a number")
        if data is None:
            data = source.read(size)
            source.read(-size % 8)
        return np.frombuffer(data, dtype).astype(ELEMENT_TYPES[kind], copy=False)

    def _array_header(self, source: Source) -> ArrayHeader:
        flags, shape, name = (self._values(source) for _ in range(3))
        if len(flags) != 2 or len(shape) < 2 or min(shape) < 0:
            raise ValueError("an array has no valid shape")
        return ArrayHeader(
            name.tobytes().decode("latin-1"),
            tuple(map(int, shape)),
            int(flags[0]) & 0xFF,
            bool(int(flags[0]) & IS_COMPLEX),
        )

    def read_values(self, header: ArrayHeader, source: Source) -> Any:
        """The values behind a header: an array, or a `csr_array` if it is sparse."""
        read = self._read_sparse if header.array_class == SPARSE else self._read_dense
        array = read(header, source)
        source.check_end()
        return array

    def _read_dense(self, header: ArrayHeader, source: Source) -> np.ndarray:
        values = self._values(source)
        if len(values) != math.prod(header.shape):
            raise ValueError(f"'{header.name}' does not have the shape {header.shape}")
        return values.reshape(header.shape, order="F")

    def _read_sparse(
        self, header: ArrayHeader, source: Source
    ) -> scipy.sparse.csr_array:
        indices, indptr, values = (self._values(source) for _ in range(3))
        if len(header.shape) != 2 or len(indptr) != header.shape[1] + 1:
            raise ValueError(f"'{header.name}' does not have the shape {header.shape}")
        # MATLAB may reserve more room than there are entries.
        nnz = int(indptr[-1])
        matrix = scipy.sparse.csc_array(header.shape, dtype=values.dtype)
        matrix.data, matrix.indices, matrix.indptr = values[:nnz], indices[:nnz], indptr
        check_compressed(matrix)
        rows = matrix.tocsr()
        rows.eliminate_zeros()
        return rows
