"""Row batches of `RowLoader` are rows of the full graph."""

import pyg_models as pyg
import pytest
import torch
from graphs import drawn, suiting

import unalike.pyg
from unalike import Adjacency, UserError, random_splits
from unalike.data import csr
from unalike.pyg import LINKX, RowLoader

NODES = 83


@pytest.fixture
def data():
    graph = suiting(nodes=NODES, directed=True)
    splits = random_splits(graph.labels, count=2)
    return unalike.pyg.dataset(graph, splits=splits)


def dense_rows(data):
    """The dense adjacency with a row for each target; repeated edges add up."""
    rows = torch.zeros(data.num_nodes, data.num_nodes)
    source, target = data.edge_index
    weight = data.get("edge_weight", torch.ones(data.num_edges))
    return rows.index_put_((target, source), weight, accumulate=True)


def check(batches, data):
    """Every batch has the rows of its nodes; the ids of all batches in order."""
    rows = dense_rows(data)
    for batch in batches:
        assert batch.adj_t.shape == (len(batch.n_id), data.num_nodes)
        assert torch.equal(batch.adj_t.to_dense(), rows[batch.n_id])
        assert torch.equal(batch.x.to_dense(), data.x.to_dense()[batch.n_id])
        for name in ("y", "train_mask", "val_mask", "test_mask"):
            assert torch.equal(batch[name], data[name][batch.n_id])
    return torch.cat([batch.n_id for batch in batches]).tolist()


def test_batches_are_rows_of_the_full_graph(data):
    loader = RowLoader(data, batch_size=20)
    assert len(loader) == 5
    assert check(list(loader), data) == list(range(NODES))


def test_workers_give_the_same_batches(data):
    loader = RowLoader(data, batch_size=20, num_workers=2)
    assert check(list(loader), data) == list(range(NODES))


def test_workers_copy_long_rows_after_numba_has_started_threads(data, monkeypatch):
    monkeypatch.setattr(csr, "SMALL_NNZ", 0)
    ids = check(list(RowLoader(data, batch_size=20)), data)
    assert ids == check(list(RowLoader(data, 20, num_workers=1, timeout=60)), data)


def test_shuffled_batches_repeat_with_a_generator(data):
    def ids(seed, workers=0):
        loader = RowLoader(
            data,
            20,
            shuffle=True,
            num_workers=workers,
            generator=torch.Generator().manual_seed(seed),
        )
        return check(list(loader), data)

    assert ids(0) == ids(0) == ids(0, workers=1) != ids(1)
    assert sorted(ids(0)) == list(range(NODES))


def test_sparse_features_stay_sparse():
    graph = suiting(nodes=NODES, features="sparse")
    splits = random_splits(graph.labels, count=1)
    data = unalike.pyg.dataset(graph, splits=splits, sparse=True)
    batches = list(RowLoader(data, batch_size=30))
    assert all(batch.x.layout == torch.sparse_csr for batch in batches)
    check(batches, data)


@pytest.mark.parametrize("as_mask", [True, False])
def test_input_nodes_choose_what_is_loaded(data, as_mask):
    mask = data.train_mask[:, 1]
    nodes = mask if as_mask else mask.nonzero()[:, 0]
    ids = check(list(RowLoader(data, 16, input_nodes=nodes)), data)
    assert ids == mask.nonzero()[:, 0].tolist()


def test_masks_of_several_splits_are_refused(data):
    with pytest.raises(UserError, match=r"data\.train_mask\[:, 0\]"):
        RowLoader(data, 16, input_nodes=data.train_mask)


def test_repeated_edges_and_weights_count():
    edge_index = torch.tensor([[0, 0, 1, 2], [1, 1, 2, 2]])
    for weight in (None, torch.tensor([0.5, 2.0, -1.0, 3.0])):
        data = pyg.Data(x=torch.eye(3), edge_index=edge_index, edge_weight=weight)
        rows = torch.cat([b.adj_t.to_dense() for b in RowLoader(data, 2)])
        assert torch.equal(rows, dense_rows(data))


@pytest.mark.parametrize("form", ["adjacency", "csr"])
def test_adj_t_is_read_as_well(data, form):
    source, target = data.edge_index
    rows = Adjacency.from_edges(target, source, shape=(NODES, NODES))
    given = pyg.Data(x=data.x, y=data.y)
    given.adj_t = rows if form == "adjacency" else rows.to_torch_csr()
    parts = [batch.adj_t.to_dense() for batch in RowLoader(given, 30)]
    assert torch.equal(torch.cat(parts), dense_rows(data))


def test_graphs_without_edges_are_refused():
    with pytest.raises(UserError, match="edge_index or adj_t"):
        RowLoader(pyg.Data(x=torch.eye(3)))


def test_batches_move_to_a_device_with_all_their_parts(data):
    batch = next(iter(RowLoader(data, 10))).to("meta", non_blocking=True)
    assert batch.adj_t.indices.device.type == "meta"
    assert batch.x.device.type == batch.n_id.device.type == "meta"


def test_batches_show_their_sizes(data):
    batch = next(iter(RowLoader(data, 10)))
    assert f"Adjacency([10, {NODES}], nnz={batch.adj_t.nnz})" in repr(batch)


def test_graphs_without_features_have_rows():
    data = unalike.pyg.dataset(drawn([(0, 1), (2, 1)], 3, directed=True, features=0))
    [batch] = RowLoader(data, 3)
    assert batch.x.shape == (3, 0)
    assert batch.adj_t.to_dense().tolist() == [[0, 0, 0], [1, 0, 1], [0, 0, 0]]


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("sparse", [False, True])
def test_linkx_on_batches_gives_the_rows_of_the_full_graph(depth, sparse):
    graph = suiting(nodes=NODES, features="sparse", directed=True)
    data = unalike.pyg.dataset(graph, sparse=sparse)
    torch.manual_seed(0)
    model = LINKX(NODES, data.num_features, 16, 3, 2, depth, depth, dropout=0.5)
    model(data.x, data.edge_index)  # running statistics of batch norm
    model.eval()
    full = model(data.x, data.edge_index)
    peer = pyg.Peer(NODES, data.num_features, 16, 3, 2, depth, depth).eval()
    peer.load_state_dict(model.state_dict())
    torch.testing.assert_close(full, peer(data.x, data.edge_index))
    for batch in RowLoader(data, 20, shuffle=True):
        rows = model(batch.x, batch.adj_t)
        torch.testing.assert_close(rows, full[batch.n_id])


def test_linkx_learns_from_batches_of_train_rows(data):
    torch.manual_seed(0)
    model = LINKX(NODES, data.num_features, 16, data.num_classes, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    train = data.train_mask[:, 0]
    draw = torch.Generator().manual_seed(0)
    for _ in range(30):
        for batch in RowLoader(data, 16, True, input_nodes=train, generator=draw):
            out = model(batch.x, batch.adj_t)
            torch.nn.functional.cross_entropy(out, batch.y).backward()
            optimizer.step()
            optimizer.zero_grad()
    correct = model(data.x, data.edge_index).argmax(1) == data.y
    assert correct[train].float().mean() > 0.95
