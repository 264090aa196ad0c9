"""The two-hop graph in blocks, and the estimate of its size."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unalike import Adjacency
from unalike.data import adjacency, csr, two_hop

NODES = 9
pairs = st.lists(st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)))


def rows_of(pairs, *, symmetric=False):
    source, target = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T
    rows = Adjacency.from_edges(source, target, shape=(NODES, NODES))
    return rows.to_undirected() if symmetric else rows


def expected(rows):
    """The pattern of A A without that of A, written out."""
    once = rows.to_dense().bool()
    return (once.float() @ once.float() > 0) & ~once


@given(pairs, st.booleans(), st.sampled_from([1, 3, 10, 2**23]))
def test_blocks_equal_the_full_product(pairs, symmetric, paths):
    rows = rows_of(pairs, symmetric=symmetric)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(two_hop, "PATHS_AT_ONCE", paths)
        found = rows.two_hop
    assert torch.equal(found.to_dense().bool(), expected(rows))
    assert found.indices.dtype == torch.int32
    for row in range(NODES):
        columns = found.indices[found.indptr[row] : found.indptr[row + 1]]
        assert (columns.diff() > 0).all()
    assert torch.equal(found.T.to_dense(), found.to_dense().T)


@given(st.lists(st.integers(0, 9), min_size=1), st.sampled_from([1, 3, 10, 100]))
def test_a_block_of_rows_has_few_entries_or_one_row(counts, max_nnz):
    indptr = np.concatenate([[0], np.cumsum(counts)])
    blocks = list(csr.row_blocks(indptr, max_nnz))
    assert [first for first, _ in blocks] == [0, *(last for _, last in blocks)][:-1]
    assert blocks[-1][1] == len(counts)
    for first, last in blocks:
        assert last == first + 1 or sum(counts[first:last]) <= max_nnz
        # No block could have one row more.
        assert last == len(counts) or sum(counts[first : last + 1]) > max_nnz


@given(pairs, st.booleans())
def test_the_two_hop_graph_of_an_undirected_graph_is_not_transposed(pairs, compared):
    rows = rows_of(pairs, symmetric=True)
    if compared:
        rows = Adjacency(rows.indptr, rows.indices, rows.num_cols)
        assert rows.is_symmetric
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adjacency, "transpose", lambda _: pytest.fail("transposed"))
        assert rows.two_hop.is_symmetric
        assert rows.two_hop.T is rows.two_hop


@given(pairs)
def test_paths_bound_the_entries(pairs):
    rows = rows_of(pairs)
    once = rows.to_dense()
    most = two_hop.two_hop_nnz_bound(rows.to_scipy().astype(bool))
    assert most == (once @ once).sum(1).clamp(max=NODES).sum()
    assert rows.two_hop.nnz <= most


def test_the_estimate_is_near_and_not_below():
    draw = torch.Generator().manual_seed(0)
    # Circles of uneven size whose members mostly know each other: paths meet often.
    source, step = torch.randint(2000, (2, 40_000), generator=draw)
    target = (source // 100 * 100 + step % (20 + source // 100 * 4)) % 2000
    rows = Adjacency.from_edges(source, target, shape=(2000, 2000)).to_undirected()
    once = rows.to_scipy().astype(bool)
    truth = rows.two_hop.nnz
    assert truth <= two_hop.estimate_two_hop_nnz(once) <= 1.5 * truth
    assert two_hop.two_hop_nnz_bound(once) > 1.5 * truth
    assert two_hop.estimate_two_hop_nnz(rows_of([]).to_scipy().astype(bool)) == 0


def test_an_empty_graph_has_no_two_hops():
    none = torch.zeros(0, dtype=torch.int64)
    assert Adjacency.from_edges(none, none, shape=(0, 0)).two_hop.shape == (0, 0)
