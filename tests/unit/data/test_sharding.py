"""Shards: ranges of columns with evenly many entries, in memory and on disk."""

from itertools import pairwise

import pytest
import torch
from graphs import sparse, suiting
from hypothesis import given
from hypothesis import strategies as st

from unalike import Adjacency, UserError, random_splits, save_graph
from unalike.data import sharding
from unalike.data.csr import balanced_bounds
from unalike.data.sharding import column_nnz, iterate_rows, shard_graph, take_columns
from unalike.data.store import verify_graph
from unalike.methods.link import LINK
from unalike.nn import cpu
from unalike.nn.cpu import spmm_accumulate_
from unalike.training.distributed import World, shard_columns

matrices = st.tuples(
    st.integers(1, 12), st.integers(1, 12), st.booleans(), st.integers(0, 99)
)


def random_matrix(rows, columns, weighted, seed):
    generator = torch.Generator().manual_seed(seed)
    dense = torch.randn(rows, columns, generator=generator).clamp(min=0)
    return sparse(dense if weighted else (dense > 0).float())


@given(matrices, st.integers(1, 12))
def test_shards_are_the_columns_of_the_full_matrix(matrix, parts):
    rows = random_matrix(*matrix)
    bounds = balanced_bounds(column_nnz(rows), min(parts, rows.num_cols))
    assert bounds[0] == 0
    assert bounds[-1] == rows.num_cols
    for begin, end in pairwise(bounds):
        assert begin < end
        shard = take_columns(rows, range(begin, end))
        assert (shard.local_cols, shard.num_cols_global) == (
            range(begin, end),
            rows.num_cols,
        )
        assert torch.equal(shard.global_degrees, rows.degrees)
        some = shard.select_rows(torch.arange(rows.num_rows)).to_dense()
        assert torch.equal(some, rows.to_dense()[:, begin:end])


@given(matrices, st.integers(1, 4), st.integers(1, 40))
def test_sums_over_shards_have_the_bits_of_one_sum(matrix, parts, width):
    rows = random_matrix(*matrix)
    table = torch.randn(
        rows.num_cols, width, generator=torch.Generator().manual_seed(1)
    )
    total = torch.zeros(rows.num_rows, width)
    bounds = balanced_bounds(column_nnz(rows), min(parts, rows.num_cols))
    for begin, end in pairwise(bounds):
        spmm_accumulate_(
            take_columns(rows, range(begin, end)).local, table[begin:end], total
        )
    assert torch.equal(total, cpu.spmm(rows, table))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(1, 30))
def test_ranges_hold_evenly_many_entries(counts, parts):
    counts, parts = torch.tensor(counts), min(parts, len(counts))
    bounds = balanced_bounds(counts, parts)
    assert len(bounds) == parts + 1
    assert all(begin < end for begin, end in pairwise(bounds))
    if bool((counts > 0).all()):
        loads = [int(counts[begin:end].sum()) for begin, end in pairwise(bounds)]
        assert max(loads) <= int(counts.sum()) / parts + 2 * int(counts.max())


def test_a_column_with_many_entries_is_a_shard_of_its_own():
    assert balanced_bounds(torch.tensor([90, 1, 1, 1, 1, 6]), 2) == [0, 1, 6]


@pytest.mark.parametrize("parts", [0, 4])
def test_impossible_numbers_of_shards_are_refused(parts):
    with pytest.raises(UserError, match="3 columns cannot be divided among"):
        balanced_bounds(torch.ones(3).long(), parts)


def test_rows_come_in_blocks_of_bounded_entries(monkeypatch):
    monkeypatch.setattr(sharding, "ENTRIES_AT_ONCE", 10)
    rows = suiting(nodes=60).adjacency
    blocks = list(iterate_rows(rows))
    dense = torch.cat([block.to_dense() for block in blocks])
    assert torch.equal(dense, rows.to_dense())
    assert len(blocks) > 1
    assert max(block.nnz for block in blocks if block.num_rows > 1) <= 10


@pytest.fixture
def stored(tmp_path):
    graph = suiting(nodes=90, features="sparse", directed=True)
    splits = random_splits(graph.labels, count=2)
    return save_graph(tmp_path / "likes", graph, splits=splits)


def test_a_sharded_graph_is_the_same_graph(stored, tmp_path, monkeypatch):
    monkeypatch.setattr(sharding, "ENTRIES_AT_ONCE", 50)
    made = shard_graph(stored, 4, tmp_path / "four")
    verify_graph(tmp_path / "four")
    assert made.name == "likes"
    rows, whole = made.graph.adjacency, stored.graph.adjacency
    assert rows.nnz == whole.nnz
    some = torch.tensor([5, 0, 88, 5])
    assert torch.equal(
        rows.select_rows(some).to_dense(), whole.select_rows(some).to_dense()
    )
    assert torch.equal(rows[3:9].to_dense(), whole[3:9].to_dense())
    assert rows.to("cpu") is rows
    assert rows.to("meta").shape == whole.shape
    assert torch.equal(made.graph.labels, stored.graph.labels)
    for mine, other in zip(made.splits(), stored.splits(), strict=True):
        assert torch.equal(mine.train, other.train)
    for rank in range(4):
        local = shard_columns(made.graph, World(rank, 4)).adjacency
        held = local.local_cols
        wanted = whole.to_dense()[:, held.start : held.stop]
        found = local.select_rows(torch.arange(90)).to_dense()
        assert torch.equal(found, wanted)


def test_a_sharded_graph_can_be_sharded_again(stored, tmp_path):
    three = shard_graph(stored, 3, tmp_path / "three")
    again = shard_graph(three, 2, tmp_path / "again")
    at_once = shard_graph(stored, 2, tmp_path / "at once")
    assert again.metadata["arrays"] == at_once.metadata["arrays"]
    assert again.metadata["bounds"] == at_once.metadata["bounds"]
    (whole,) = (shard_graph(again, 1, tmp_path / "one").graph.adjacency.open(0),)
    assert torch.equal(whole.indices, stored.graph.adjacency.indices)


def test_a_shard_refuses_what_needs_all_columns(stored, tmp_path):
    made = shard_graph(stored, 2, tmp_path / "two").graph
    for look in (
        lambda: made.adjacency.T,
        lambda: made.adjacency.to_undirected(),
        lambda: made.subgraph(torch.arange(3)),
        lambda: made.adjacency @ torch.ones(90, 2),
        lambda: made.num_loops,
        lambda: shard_columns(made, World(1, 2)).adjacency.T,
        lambda: LINK(directions="both").prepare(made),
    ):
        with pytest.raises(UserError, match="columns of this graph are divided"):
            look()


def test_another_number_of_processes_needs_other_shards(stored, tmp_path):
    made = shard_graph(stored, 2, tmp_path / "two").graph
    with pytest.raises(UserError, match="2 shards and there are 3 processes"):
        shard_columns(made, World(0, 3))


def test_a_shard_keeps_its_range_and_degrees_on_another_device():
    rows = take_columns(suiting(nodes=40).adjacency, range(5, 20))
    moved = rows.to("cpu")
    assert (moved.local_cols, moved.num_cols_global) == (range(5, 20), 40)
    assert torch.equal(moved.global_degrees, rows.global_degrees)
    assert isinstance(moved[:3], Adjacency)
