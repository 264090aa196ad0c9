"""Sparse rows against dense algebra."""

import gc
import weakref

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from unalike import Adjacency, UserError
from unalike.data import csr
from unalike.parallel import use_threads

WEIGHTS = [0, 0, 0, 1, 2, 0.5, -1.5]


@st.composite
def matrices(draw, square=False):
    """Dense matrices, mostly zeros, plain or weighted, some rows empty."""
    rows = draw(st.integers(1, 6))
    columns = rows if square else draw(st.integers(1, 6))
    entries = st.sampled_from(WEIGHTS if draw(st.booleans()) else [0, 0, 1])
    dense = draw(arrays.arrays(np.float32, (rows, columns), elements=entries))
    for empty in draw(st.sets(st.sampled_from([0, rows - 1]))):
        dense[empty] = 0
    return torch.from_numpy(dense)


def sparse(dense):
    source, target = dense.nonzero().T
    return Adjacency.from_edges(
        source, target, shape=tuple(dense.shape), values=dense[source, target]
    )


def assert_rows(found, dense):
    """Equal numbers, and the form that is promised: ascending, no repeats."""
    assert torch.equal(found.to_dense(), dense)
    assert found.shape == tuple(dense.shape)
    assert found.indptr.dtype == torch.int64
    assert int(found.indptr[0]) == 0
    assert int(found.indptr[-1]) == found.nnz == int((dense != 0).sum())
    for first, last in zip(found.indptr[:-1], found.indptr[1:], strict=True):
        columns = found.indices[first:last].tolist()
        assert columns == sorted(set(columns))


@given(matrices())
def test_entries_become_rows(dense):
    rows = sparse(dense)
    assert_rows(rows, dense)
    assert (rows.values is None) == bool((dense[dense != 0] == 1).all())
    assert torch.equal(rows.degrees, (dense != 0).sum(1))
    assert torch.equal(rows.row_indices, dense.nonzero()[:, 0])


@given(matrices(), st.randoms())
def test_order_of_pairs_does_not_matter(dense, generator):
    source, target = dense.nonzero().T
    order = list(range(len(source)))
    generator.shuffle(order)
    rows = Adjacency.from_edges(
        source[order],
        target[order],
        shape=tuple(dense.shape),
        values=dense[source, target][order],
    )
    assert_rows(rows, dense)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 4), st.sampled_from([1.0, 2.0]))
    )
)
def test_repeats_merge_and_their_values_add_up(entries):
    dense = torch.zeros(4, 5)
    for source, target, weight in entries:
        dense[source, target] += weight
    source = torch.tensor([entry[0] for entry in entries], dtype=torch.int64)
    target = torch.tensor([entry[1] for entry in entries], dtype=torch.int64)
    weights = torch.tensor([entry[2] for entry in entries])
    plain = Adjacency.from_edges(source, target, shape=(4, 5))
    assert_rows(plain, (dense > 0).float())
    assert plain.values is None
    weighted = Adjacency.from_edges(source, target, shape=(4, 5), values=weights)
    assert_rows(weighted, dense)


def test_a_pair_may_repeat_more_often_than_a_byte_counts():
    ends = torch.zeros(256, dtype=torch.int64)
    rows = Adjacency.from_edges(ends, ends, shape=(1, 1))
    assert rows.to_dense().tolist() == [[1.0]]


@given(matrices(), st.data())
def test_rows_in_any_order_with_repeats(dense, data):
    ids = data.draw(st.lists(st.integers(0, len(dense) - 1), max_size=8))
    ids = torch.tensor(ids, dtype=torch.int64)
    for found in (sparse(dense).select_rows(ids), sparse(dense)[ids]):
        assert_rows(found, dense[ids])


@given(matrices(), st.data())
def test_slices(dense, data):
    chosen = data.draw(st.slices(len(dense)))
    wanted = torch.from_numpy(dense.numpy()[chosen].copy())
    assert_rows(sparse(dense)[chosen], wanted)


def test_a_slice_shares_memory():
    rows = sparse(torch.ones(4, 3))
    cut = rows[1:3]
    wanted = rows.indices.data_ptr() + 3 * rows.indices.element_size()
    assert cut.indices.data_ptr() == wanted


@given(matrices(square=True), st.data())
def test_subgraph_of_ids_in_any_order(dense, data):
    every = list(range(len(dense)))
    ids = data.draw(st.lists(st.sampled_from(every), unique=True))
    ids = torch.tensor(ids, dtype=torch.int64)
    assert_rows(sparse(dense).subgraph(ids), dense[ids][:, ids])


@pytest.mark.parametrize("subgraph", [csr.subgraph_cpu, csr.subgraph_torch])
def test_negative_ids_of_a_subgraph_count_from_the_end(subgraph):
    dense = torch.tril(torch.ones(50, 50))
    rows = Adjacency.from_scipy(scipy.sparse.csr_array(dense.numpy()))
    ids = torch.tensor([3, -1, 40, -2])
    result = Adjacency(*subgraph(rows, ids))
    assert torch.equal(result.to_dense(), dense[ids][:, ids])


@given(matrices(square=True))
def test_a_subgraph_of_a_symmetric_matrix_is_known_to_be_symmetric(dense):
    whole = sparse(torch.maximum(dense, dense.T))
    for known in (False, True):
        if known:
            assert whole.is_symmetric
        cut = whole.subgraph(torch.arange(len(dense) - 1, -1, -1))
        assert (cut._symmetric is not None) == known
        assert cut.T is cut


def test_a_symmetric_matrix_has_no_reference_to_itself():
    rows = sparse(torch.ones(2, 2))
    assert rows.T is rows
    gone = weakref.ref(rows)
    gc.disable()
    try:
        del rows
        assert gone() is None
    finally:
        gc.enable()


@given(matrices(), st.booleans())
def test_transpose(dense, small):
    rows = sparse(dense)
    with pytest.MonkeyPatch.context() as monkeypatch:
        if not small:  # by compiled loops, as for many entries
            monkeypatch.setattr(csr, "SMALL_NNZ", -1)
        assert_rows(rows.T, dense.T)
        assert_rows(rows.T.T, dense)


@given(matrices(), st.sampled_from([0, 1000]))
def test_nonempty_columns_are_rows_of_the_transpose(dense, more):
    """By the full transpose, or by a sort of the entries of many more columns."""
    dense = torch.cat([dense, dense.new_zeros(len(dense), more)], 1)
    rows = sparse(dense)
    ids, columns = csr.nonempty_columns(rows)
    assert ids.dtype == torch.int64
    assert ids.tolist() == dense.any(0).nonzero()[:, 0].tolist()
    found = Adjacency(*columns)
    assert_rows(found, dense.T[ids])
    whole = rows.T.select_rows(ids)
    assert torch.equal(found.indices, whole.indices)


@given(matrices(square=True), st.data())
def test_subgraphs_one_after_the_other_do_not_disturb_each_other(dense, data):
    rows = sparse(dense)
    lists = st.lists(st.sampled_from(range(len(dense))), unique=True)
    for ids in data.draw(st.lists(lists, min_size=2, max_size=4)):
        ids = torch.tensor(ids, dtype=torch.int64)
        assert_rows(rows.subgraph(ids), dense[ids][:, ids])


@given(matrices(square=True))
def test_symmetry_is_detected(dense):
    rows = sparse(dense)
    assert rows.is_symmetric == bool(torch.equal(dense, dense.T))
    assert rows.to_undirected().is_symmetric


@given(matrices(square=True))
def test_undirected_has_every_entry_and_the_larger_of_two_values(dense):
    assert_rows(sparse(dense).to_undirected(), dense_union(dense, dense.T))


def dense_union(a, b):
    """Entries of either matrix; where both have one, the larger value."""
    return torch.maximum(torch.where(a != 0, a, b), torch.where(b != 0, b, a))


@given(matrices(), st.data())
def test_union_has_the_entries_of_both_and_the_larger_of_two_values(dense, data):
    values = st.sampled_from(data.draw(st.sampled_from([WEIGHTS, [0, 1]])))
    other = torch.from_numpy(
        data.draw(arrays.arrays(np.float32, tuple(dense.shape), elements=values))
    )
    found = sparse(dense).union(sparse(other))
    assert_rows(found, dense_union(dense, other))


@given(matrices())
def test_nbytes_is_the_memory_of_the_arrays(dense):
    rows = sparse(dense)
    values = 0 if rows.values is None else 4 * rows.nnz
    assert rows.nbytes == 8 * (len(dense) + 1) + 4 * rows.nnz + values


@given(matrices(), st.data())
def test_hstack(dense, data):
    entries = st.sampled_from(WEIGHTS)
    shape = (len(dense), data.draw(st.integers(1, 4)))
    other = torch.from_numpy(
        data.draw(arrays.arrays(np.float32, shape, elements=entries))
    )
    assert_rows(sparse(dense).hstack(sparse(other)), torch.cat([dense, other], 1))


@given(matrices(), st.data())
def test_columns_of_a_range(dense, data):
    ends = st.integers(0, dense.shape[1])
    first, stop = sorted((data.draw(ends), data.draw(ends)))
    assert_rows(sparse(dense).select_columns(range(first, stop)), dense[:, first:stop])


@given(matrices())
def test_scipy_and_back(dense):
    rows = sparse(dense)
    again = Adjacency.from_scipy(rows.to_scipy())
    assert_rows(again, dense)
    assert (again.values is None) == (rows.values is None)


def test_scipy_matrices_are_put_in_order_and_left_alone():
    messy = scipy.sparse.csr_array(
        (np.array([1.0, 2.0, 0.0, 5.0]), np.array([2, 0, 1, 0]), np.array([0, 3, 4])),
        shape=(2, 3),
    )
    dense = torch.tensor([[2.0, 0, 1], [5, 0, 0]])
    assert_rows(Adjacency.from_scipy(messy), dense)
    assert messy.indices.tolist() == [2, 0, 1, 0]
    assert messy.data.tolist() == [1.0, 2.0, 0.0, 5.0]


@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 5)])
def test_no_edges(shape):
    none = torch.zeros(0, dtype=torch.int64)
    rows = Adjacency.from_edges(none, none, shape=shape)
    assert_rows(rows, torch.zeros(shape))
    assert_rows(rows.T, torch.zeros(shape).T)
    assert_rows(rows.select_rows(torch.tensor([0, 0])), torch.zeros(2, shape[1]))


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        ([0, 3], [0, 0], "source 3; ids run from 0 to 2"),
        ([0, 0], [0, -1], "target -1; ids run from 0 to 4"),
        ([0, 0], [0, 5], "target 5; ids run from 0 to 4"),
    ],
)
def test_ids_out_of_range_are_refused(source, target, words):
    with pytest.raises(UserError, match=words):
        Adjacency.from_edges(torch.tensor(source), torch.tensor(target), shape=(3, 5))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_transpose_reads_the_entries_once_per_thread(threads, monkeypatch):
    scatter, passes = csr._scatter_columns, []

    def noted(*arrays):
        passes.append(arrays[0])
        scatter(*arrays)

    monkeypatch.setattr(csr, "_scatter_columns", noted)
    monkeypatch.setattr(csr, "SMALL_NNZ", 0)
    source, target = torch.tensor([[0, 0, 2], [1, 3, 1]])
    with use_threads(threads):
        found = Adjacency.from_edges(source, target, shape=(3, 4)).T
    expected = Adjacency.from_edges(target, source, shape=(4, 3))
    assert torch.equal(found.to_dense(), expected.to_dense())
    assert passes == [threads]
