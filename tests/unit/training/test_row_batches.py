"""Batches of rows: which rows, which steps, and the same answers as without them."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from graphs import HAND_DRAWN, suiting, tasks_of
from scipy.sparse import csr_array

from unalike import Adjacency, Metric, UserError
from unalike.data.metrics import cross_entropy
from unalike.methods.base import train_stacks
from unalike.methods.gcn import GCN
from unalike.methods.link import LINK
from unalike.methods.linkx import LINKX
from unalike.methods.mlp import MLP
from unalike.nn import weights_on_disk
from unalike.nn.optim import (
    ADAM_EPS,
    BETA1,
    BETA2,
    SPARSE_OPTIMIZERS,
    AdamW,
    AdamWStep,
    LazyAdamW,
    RowwiseAdagrad,
)
from unalike.nn.weights_on_disk import empty_in_file, empty_weights
from unalike.samplers.base import FullBatch, RandomPartSampler
from unalike.samplers.neighbours import NeighbourSampler
from unalike.samplers.rows import RowSampler, paper_ranges
from unalike.training import minibatch
from unalike.training.checkpoint import Checkpoint
from unalike.training.state import Training
from unalike.training.step import copy_to_cpu


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_every_train_row_comes_once_an_epoch():
    (task,) = tasks_of(suiting())
    batches = list(RowSampler(size=40).epoch(task.graph, task.train, generator()))
    assert [len(batch.loss_weight) for batch in batches[:-1]] == [40] * (
        len(batches) - 1
    )
    seen = torch.cat([batch.graph.ids for batch in batches])
    assert torch.equal(seen.sort()[0], task.train.sort()[0])
    assert not torch.equal(seen, task.train)
    for batch in batches:
        assert batch.loss_weight.eq(1).all()
        whole = task.graph.adjacency.to_dense()
        assert torch.equal(batch.graph.adjacency.to_dense(), whole[batch.graph.ids])
        assert torch.equal(batch.graph.labels, task.graph.labels[batch.graph.ids])


def test_other_seeds_give_other_batches():
    (task,) = tasks_of(suiting())

    def ids(seed):
        batches = RowSampler(size=40).epoch(task.graph, task.train, generator(seed))
        return torch.cat([batch.graph.ids for batch in batches])

    assert torch.equal(ids(1), ids(1))
    assert not torch.equal(ids(1), ids(2))


def rows_with(degrees):
    starts = torch.tensor([0, *degrees]).cumsum(0)
    columns = torch.cat([torch.arange(degree) for degree in degrees]).int()
    return Adjacency(starts, columns, max(degrees))


@pytest.mark.parametrize(
    ("degrees", "parts", "wanted"),
    [
        # 9 entries and 2 parts: candidates 4 and 8, the last is dropped.
        ([3, 3, 3], 2, [0, 2, 3]),
        # 8 entries and 2 parts: the only candidate, 4, is dropped.
        ([4, 4], 2, [0, 2]),
        # A cut inside row 1 moves to the next row that has entries, past empty ones.
        ([1, 5, 0, 0, 3], 4, [0, 4, 5]),
        # Cuts on the first entries of rows 1 and 2 move to the ends of these rows.
        ([3, 3, 4], 3, [0, 2, 3]),
        ([0, 0, 0], 3, [0, 3]),
    ],
)
def test_ranges_of_the_paper(degrees, parts, wanted):
    if not sum(degrees):
        adjacency = Adjacency(torch.zeros(4).long(), torch.zeros(0).int(), 3)
    else:
        adjacency = rows_with(degrees)
    assert paper_ranges(adjacency, parts) == wanted


def ranges_of_the_papers_code(adjacency, parts):
    """Walk through the entries from each cut to the next change of the row."""
    rows = adjacency.row_indices.tolist()
    size = max(1, len(rows) // parts)
    bounds = {0, adjacency.num_rows}
    for entry in list(range(size, len(rows), size))[:-1]:
        row = rows[entry]
        while entry < len(rows) and rows[entry] == row:
            entry += 1
        bounds |= {rows[entry]} if entry < len(rows) else set()
    return sorted(bounds)


def test_ranges_of_the_paper_are_off_by_one_where_a_cut_begins_a_row():
    for seed in range(100):
        degrees = torch.randint(6, (40,), generator=generator(seed)).tolist()
        adjacency = rows_with(degrees)
        for parts in (3, 10):
            wanted = ranges_of_the_papers_code(adjacency, parts)
            assert paper_ranges(adjacency, parts) == wanted


def test_iid_batches_are_a_uniform_sample_of_the_nodes_once_an_epoch():
    (task,) = tasks_of(suiting())
    rows, nodes = RowSampler(style="iid", parts=5), task.graph.num_nodes
    counts = torch.zeros(nodes)
    for seed in range(400):
        (batch,) = rows.epoch(task.graph, task.train, generator(seed))
        ids = batch.graph.ids
        assert len(ids.unique()) == len(ids) == nodes // 5
        assert torch.equal(batch.loss_weight > 0, torch.isin(ids, task.train))
        counts[ids] += 1
    # Five standard deviations of a binomial distribution of 400 samples.
    assert (counts - 80).abs().max() < 5 * (400 * 0.2 * 0.8) ** 0.5
    assert not rows.depends_on_train


def test_an_epoch_of_the_paper_is_one_range_that_holds_other_rows_too():
    (task,) = tasks_of(suiting())
    rows = RowSampler(style="paper", parts=5)
    bounds = paper_ranges(task.graph.adjacency, 5)
    found = set()
    for seed in range(40):
        (batch,) = rows.epoch(task.graph, task.train, generator(seed))
        ids = batch.graph.ids
        assert torch.equal(ids, torch.arange(int(ids[0]), int(ids[-1]) + 1))
        assert torch.equal(batch.loss_weight > 0, torch.isin(ids, task.train))
        found.add((int(ids[0]), int(ids[-1]) + 1))
    assert found == set(pairwise(bounds))


@pytest.mark.parametrize("settings", [{"size": 0}, {"parts": 0}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(UserError):
        RowSampler(**settings)


@pytest.mark.parametrize("weights", [None, torch.tensor([1.0, 4.0])])
@pytest.mark.parametrize("method", [LINK, LINKX, MLP])
@pytest.mark.long
def test_one_batch_of_all_rows_is_the_full_batch(method, weights):
    """Where no batch norm and no dropout looks at the order of rows."""
    (task,) = tasks_of(suiting())
    task = replace(task, class_weights=weights)
    training = Training(epochs=8)
    plain = {} if method is LINK else {"layers": 1}
    full = method(training=training, **plain).solve(task)
    rows = method(training=training, batching=RowSampler(size=10_000), **plain).solve(
        task
    )
    torch.testing.assert_close(
        torch.tensor(rows.curve.losses), torch.tensor(full.curve.losses)
    )
    assert rows.curve.best_epoch == full.curve.best_epoch
    torch.testing.assert_close(rows.scores, full.scores, atol=1e-4, rtol=1e-4)


def test_the_loss_of_an_epoch_is_that_of_all_its_nodes():
    """However many nodes its last batch has; nothing moves on the way."""
    (task,) = tasks_of(suiting())
    still = Training(epochs=1, lr=1e-30, weight_decay=0.0)
    size = len(task.train) - 3
    losses = [
        LINK(training=still, batching=batching).solve(task).curve.losses
        for batching in (FullBatch(), RowSampler(size=size))
    ]
    assert losses[1] == pytest.approx(losses[0], rel=1e-6)


@pytest.mark.parametrize("tables", SPARSE_OPTIMIZERS)
@pytest.mark.parametrize("style", ["shuffled", "paper", "iid"])
@pytest.mark.long
def test_all_ways_learn(style, tables):
    (task,) = tasks_of(suiting())
    batching = RowSampler(size=30, style=style, tables=tables)
    method = LINKX(hidden=8, batching=batching, training=Training(epochs=60))
    solution = method.solve(task)
    assert solution.curve.losses[-1] < 0.8 * solution.curve.losses[0]
    assert solution.scores.isfinite().all()


@pytest.mark.parametrize("graph", ["first node alone", "loops", "no edges"])
def test_odd_graphs_train_by_rows(graph):
    (task,) = tasks_of(HAND_DRAWN[graph])
    method = LINKX(hidden=4, batching=RowSampler(size=2), training=Training(epochs=2))
    assert method.solve(task).scores.isfinite().all()


def test_runs_of_several_splits_are_those_of_single_ones():
    tasks = tasks_of(suiting(), 2)
    methods = [
        LINKX(
            hidden=4, batching=RowSampler(size=50), training=Training(epochs=4, lr=lr)
        )
        for lr in (0.01, 0.02)
    ]
    pairs = [(method, task) for task in tasks for method in methods]
    solutions = train_stacks(*zip(*pairs, strict=True))
    for (method, task), solution in zip(pairs, solutions, strict=True):
        torch.testing.assert_close(
            solution.curve.losses[0], method.solve(task).curve.losses[0]
        )


def test_training_goes_on_from_a_checkpoint(tmp_path, monkeypatch):
    (task,) = tasks_of(suiting())
    method = LINKX(hidden=4, batching=RowSampler(size=50), training=Training(epochs=9))
    whole = method.solve(task)
    kept = Checkpoint(tmp_path / "state", "key", every=0.0)
    steps = iter(range(4))

    def interrupted(self):
        if next(steps, None) is None:
            raise KeyboardInterrupt
        run_epoch(self)

    run_epoch = minibatch.MiniBatchEpochs.run_epoch
    monkeypatch.setattr(minibatch.MiniBatchEpochs, "run_epoch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train_stacks([method], [task], checkpoint=kept)
    monkeypatch.setattr(minibatch.MiniBatchEpochs, "run_epoch", run_epoch)
    (resumed,) = train_stacks([method], [task], checkpoint=kept)
    assert resumed.curve.losses == whole.curve.losses
    assert torch.equal(resumed.scores, whole.scores)


def nearness(scores, labels, weight):
    """A score that is highest in the middle of training, and never twice the same."""
    return 1 - (cross_entropy(scores, labels, weight).double() - 0.3).abs()


@pytest.mark.parametrize("tables", SPARSE_OPTIMIZERS)
@pytest.mark.long
def test_scores_are_those_of_the_best_epoch(tables):
    metric = Metric("nearness", nearness, cross_entropy)
    (task,) = tasks_of(suiting(), metric=metric)

    def solved(epochs):
        batching = RowSampler(size=40, tables=tables)
        training = Training(epochs=epochs, lr=0.003)
        return LINKX(hidden=8, batching=batching, training=training).solve(task)

    whole = solved(25)
    best = whole.curve.best_epoch
    assert 1 < best < 25
    assert torch.equal(whole.scores, solved(best).scores)


@pytest.mark.parametrize("tables", SPARSE_OPTIMIZERS)
def test_weights_that_lie_in_files_learn_the_same(tables, monkeypatch, tmp_path):
    (task,) = tasks_of(suiting())
    training = Training(epochs=4)
    batching = RowSampler(size=40, tables=tables)
    method = LINKX(hidden=8, batching=batching, training=training)
    inside = method.solve(task)
    shapes = []

    def counted(shape):
        shapes.append(shape)
        return empty_in_file(shape)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(weights_on_disk, "MIN_FILE_BYTES", 0)
    monkeypatch.setattr(weights_on_disk, "MAX_MEMORY_SHARE", 0.0)
    monkeypatch.setattr(weights_on_disk, "empty_in_file", counted)
    outside = method.solve(task)
    assert torch.equal(inside.scores, outside.scores)
    assert inside.curve.losses == outside.curve.losses
    table = (task.graph.num_nodes, 8)
    assert table in shapes
    assert (task.graph.num_nodes, 1, 8) in map(tuple, shapes)
    assert not list((tmp_path / "unalike" / "weights").iterdir())


def test_weights_that_fit_nowhere_are_said_to(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(UserError, match=r"Weights of 3725290\.3 GiB fit neither"):
        empty_weights((10**12, 1000))


def test_inference_that_does_not_fit_on_the_gpu_runs_on_the_cpu(monkeypatch):
    (task,) = tasks_of(suiting())
    batching = RandomPartSampler(parts=3)
    method = GCN(hidden=8, batching=batching, training=Training(epochs=4))
    on_gpu = method.solve(task)
    scored = minibatch.predict_into

    def short_of_memory(state, batches, scores, **rows):
        if state is not copies[-1]:
            list(batches)
            raise torch.OutOfMemoryError
        return scored(state, batches, scores, **rows)

    copies = [None]

    def copied(state):
        copies.append(copy_to_cpu(state))
        return copies[-1]

    monkeypatch.setattr(minibatch, "copy_to_cpu", copied)
    monkeypatch.setattr(minibatch, "predict_into", short_of_memory)
    on_cpu = method.solve(task)
    assert len(copies) == 1 + 5
    assert torch.equal(on_gpu.scores, on_cpu.scores)
    assert on_gpu.curve.valid_scores == on_cpu.curve.valid_scores


def some_matrix(rows, columns, share):
    dense = (torch.rand(rows, columns) < share).float()
    return Adjacency.from_scipy(csr_array(dense))


def step_at(count, rate=0.1, decay=0.5):
    rates = torch.tensor([rate]), torch.tensor([decay])
    return AdamWStep(torch.tensor([count]), *rates, torch.tensor([False]))


def test_lazy_is_exact_where_every_batch_meets_every_row():
    torch.manual_seed(0)
    now = torch.randn(6, 1, 3)
    lazy, exact = (kind.create(now.clone(), bf16=False) for kind in (LazyAdamW, AdamW))
    everything = some_matrix(4, 6, 2.0)
    for count in range(1, 6):
        gradient = torch.randn(4, 1, 3)
        for table in (lazy, exact):
            table.step(everything, gradient, step_at(count))
    torch.testing.assert_close(lazy.weight, exact.weight)
    torch.testing.assert_close(lazy.exp_avg_sq, exact.exp_avg_sq)


def test_a_row_that_was_away_is_decayed_as_often():
    torch.manual_seed(0)
    table = LazyAdamW.create(torch.randn(2, 1, 3), bf16=True)
    first = Adjacency.from_edges(torch.tensor([0]), torch.tensor([0]), shape=(1, 2))
    other = Adjacency.from_edges(torch.tensor([0]), torch.tensor([1]), shape=(1, 2))
    gradient = torch.randn(1, 1, 3)
    table.step(first, gradient, step_at(1))
    before = {name: part.clone() for name, part in vars(table).items()}
    for count in (2, 3):
        table.step(other, gradient, step_at(count))
    assert torch.equal(table.weight[0], before["weight"][0])
    table.catch_up(step_at(3))
    torch.testing.assert_close(
        table.weight[0], before["weight"][0] * (1 - 0.1 * 0.5) ** 2
    )
    torch.testing.assert_close(table.exp_avg[0], before["exp_avg"][0] * BETA1**2)
    torch.testing.assert_close(table.exp_avg_sq[0], before["exp_avg_sq"][0] * BETA2**2)
    assert table.last_step.tolist() == [3, 3]
    assert torch.equal(table.weight_bf16, table.weight.to(torch.bfloat16))


def test_adagrad_divides_by_the_size_of_past_gradients():
    torch.manual_seed(0)
    now = torch.randn(5, 1, 3)
    table = RowwiseAdagrad.create(now.clone(), bf16=False)
    squares = torch.zeros(5, 1, 1)
    for count in range(1, 4):
        matrix = some_matrix(4, 5, 0.3)
        grad_product = torch.randn(4, 1, 3)
        table.step(matrix, grad_product, step_at(count))
        gradient = (matrix.to_dense().T @ grad_product[:, 0])[:, None]
        met = matrix.to_dense().any(0)
        squares = squares + gradient.square().mean(-1, keepdim=True)
        moved = now * (1 - 0.05) - 0.1 * gradient / (squares.sqrt() + ADAM_EPS)
        now = torch.where(met[:, None, None], moved, now)
    torch.testing.assert_close(table.weight, now)


def test_full_is_the_default_and_a_batching_like_any_other():
    (task,) = tasks_of(suiting())
    (batch,) = FullBatch().epoch(task.graph, task.train, generator())
    assert batch.graph is task.graph
    assert batch.loss_weight.nonzero()[:, 0].tolist() == task.train.sort()[0].tolist()
    assert LINK().batching == FullBatch()


SINGLE = {
    "rows": LINKX(hidden=4, layers=2, batching=RowSampler(size=10)),
    "random-parts": GCN(hidden=4, batching=RandomPartSampler(parts=20)),
    "neighbours": GCN(hidden=4, batching=NeighbourSampler(size=10)),
    "paper": LINKX(hidden=4, layers=2, batching=RowSampler(style="paper", parts=40)),
}


def eleven_train_nodes(nodes=30):
    (task,) = tasks_of(suiting(nodes=nodes))
    return replace(task, train=task.train[:11])


@pytest.mark.parametrize("name", SINGLE)
def test_a_batch_of_one_node_trains_with_batch_norm(name):
    method = replace(SINGLE[name], training=Training(epochs=20))
    assert method.solve(eleven_train_nodes()).scores.isfinite().all()


def test_batches_of_one_node_by_choice_are_refused_with_batch_norm():
    method = replace(SINGLE["rows"], batching=RowSampler(size=1))
    with pytest.raises(UserError, match="choose larger batches"):
        method.solve(eleven_train_nodes())
    method = LINKX(hidden=4, layers=1, batching=RowSampler(size=1))
    method = replace(method, training=Training(epochs=1))
    assert method.solve(eleven_train_nodes()).scores.isfinite().all()


def test_a_single_remaining_node_joins_the_batch_before():
    task, generator = eleven_train_nodes(), torch.Generator().manual_seed(0)
    batches = RowSampler(size=5).epoch(task.graph, task.train, generator)
    ids = [batch.graph.ids for batch in batches]
    assert [len(one) for one in ids] == [5, 6]
    assert torch.equal(torch.cat(ids).sort()[0], task.train.sort()[0])


def test_an_epoch_scores_validation_nodes_alone(monkeypatch):
    (task,) = tasks_of(suiting())
    predict, rows = minibatch.predict_into, []

    def noted(state, batches, scores, **how):
        rows.append(scores.shape[1])
        return predict(state, batches, scores, **how)

    monkeypatch.setattr(minibatch, "predict_into", noted)
    method = LINKX(hidden=4, batching=RowSampler(size=50))
    replace(method, training=Training(epochs=2)).solve(task)
    valid = len(task.valid) + 1
    assert rows == [valid, valid, 301]
