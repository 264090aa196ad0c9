"""MATLAB 5 files: the arrays that SciPy reads, and errors for all else."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from unalike import UserError
from unalike.datasets.matlab import read_mat

DTYPES = ["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"]


@st.composite
def matrices(draw):
    """A dense array of any numeric type, or a sparse matrix."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    shape = draw(arrays.array_shapes(min_dims=2, max_dims=3, min_side=0, max_side=5))
    dense = draw(arrays.arrays(dtype, shape))
    if dense.ndim == 2 and dtype.kind in "f?" and draw(st.booleans()):
        return scipy.sparse.csc_matrix(dense.astype("f8" if dtype == "f4" else dtype))
    return dense


def to_dense(array):
    return array.toarray() if scipy.sparse.issparse(array) else array


@settings(max_examples=60, deadline=None)
@given(
    written=st.lists(matrices(), min_size=1, max_size=3),
    compressed=st.booleans(),
)
def test_arrays_are_those_that_scipy_reads(tmp_path_factory, written, compressed):
    path = tmp_path_factory.mktemp("mat") / "file.mat"
    names = [f"variable_{index}" for index in range(len(written))]
    variables = dict(zip(names, written, strict=True))
    scipy.io.savemat(path, variables, do_compression=compressed)
    expected = scipy.io.loadmat(path)
    for name, array in zip(names, read_mat(path, *names), strict=True):
        np.testing.assert_array_equal(to_dense(array), to_dense(expected[name]))
        assert scipy.sparse.issparse(array) == scipy.sparse.issparse(expected[name])


def test_only_the_named_variables_are_read_in_any_order(tmp_path: Path):
    path = tmp_path / "file.mat"
    words = {"text": "abc", "cells": np.array([[1], ["a"]], object), "one": 1, "two": 2}
    scipy.io.savemat(path, words)
    two, one = read_mat(path, "two", "one")
    assert (one.item(), two.item()) == (1, 2)
    with pytest.raises(UserError, match="has no variable 'three'"):
        read_mat(path, "one", "three")
    for name, kind in {"text": "char", "cells": "cell"}.items():
        with pytest.raises(UserError, match=f"'{name}' is a {kind} in place of"):
            read_mat(path, name)


def test_complex_numbers_are_refused(tmp_path: Path):
    path = tmp_path / "file.mat"
    scipy.io.savemat(path, {"x": np.array([1j])})
    with pytest.raises(UserError, match="'x' is a complex in place of numbers"):
        read_mat(path, "x")


def element(kind: int, data: bytes) -> bytes:
    """A big-endian element with its padding."""
    return struct.pack(">II", kind, len(data)) + data + bytes(-len(data) % 8)


def test_a_big_endian_file(tmp_path: Path):
    values = np.array([[1.5, -2.0], [3.0, 4.0]])
    flags = element(6, struct.pack(">II", 6, 0))
    shape = element(5, struct.pack(">ii", 2, 2))
    name = struct.pack(">HH", 1, 1) + b"x\0\0\0"
    data = element(9, values.astype(">f8").tobytes("F"))
    path = tmp_path / "file.mat"
    header = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x01\x00MI"
    path.write_bytes(header + element(14, flags + shape + name + data))
    [read] = read_mat(path, "x")
    np.testing.assert_array_equal(read, values)


def compressed_file(path: Path) -> bytearray:
    scipy.io.savemat(path, {"x": np.arange(1000.0)}, do_compression=True)
    return bytearray(path.read_bytes())


def test_a_wrong_checksum_is_noticed(tmp_path: Path):
    path = tmp_path / "file.mat"
    content = compressed_file(path)
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match="incorrect data check"):
        read_mat(path, "x")


def test_more_data_than_the_header_says_are_refused(tmp_path: Path):
    path = tmp_path / "file.mat"
    content = compressed_file(path)
    longer = zlib.compress(zlib.decompress(content[136:]) + b"more data")
    tag = struct.pack("<II", 15, len(longer))
    path.write_bytes(content[:128] + tag + longer)
    with pytest.raises(UserError, match="longer than its header says"):
        read_mat(path, "x")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a MATLAB 5 file"),
        (b"MATLAB 7.3 MAT-file".ljust(512), "save it with -v7"),
        (b"node,label\n" * 20, "not a MATLAB 5 file"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, message: str):
    path = tmp_path / "file.mat"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        read_mat(path, "x")


def test_a_file_that_is_cut_off_anywhere_is_refused(tmp_path: Path):
    path = tmp_path / "file.mat"
    for compressed in (False, True):
        matrix = scipy.sparse.random(20, 20, 0.3)
        scipy.io.savemat(path, {"x": matrix}, do_compression=compressed)
        whole = path.read_bytes()
        for size in range(0, len(whole), 7):
            path.write_bytes(whole[:size])
            with pytest.raises(UserError):
                read_mat(path, "x")
