"""Column-parallel processes give the bits of one process, and errors they report."""

import os
import signal
import socket
import time
from functools import partial

import pytest
import torch
from graphs import HAND_DRAWN, suiting, tasks_of
from pages import DOCS, blocks
from processes import free_port, join_and_work, together

from unalike import Task, UserError
from unalike.data.metrics import ACCURACY
from unalike.datasets import find
from unalike.experiments.run import check_can_distribute, run
from unalike.methods.base import train_stacks
from unalike.methods.gcn import GCN
from unalike.methods.label_propagation import LabelPropagation
from unalike.methods.link import LINK
from unalike.methods.link_concat import LINKConcat
from unalike.methods.linkx import LINKX
from unalike.methods.mlp import MLP
from unalike.nn import init
from unalike.nn.init import uniform, uniform_shard
from unalike.samplers.base import FullBatch, RandomPartSampler
from unalike.samplers.rows import RowSampler
from unalike.training.checkpoint import Checkpoint
from unalike.training.distributed import World
from unalike.training.state import Training

SHORT = Training(epochs=4)
METHODS = [
    LINK(training=SHORT),
    LINKX(hidden=8, layers=2, training=SHORT),
    LINKX(hidden=8, directions="both", training=SHORT),
    LINKConcat(hidden=8, training=SHORT),
    MLP(hidden=8, training=SHORT),
    LINKX(hidden=8, training=SHORT, batching=RowSampler(size=50)),
    LINKX(hidden=8, training=SHORT, batching=RowSampler(size=50, tables="lazy")),
    LINK(training=SHORT, batching=RowSampler(size=50, tables="adagrad")),
    LINKX(hidden=8, training=SHORT, batching=RowSampler(style="paper", parts=3)),
]


def values(solution):
    """Scores and curve of a solution, without its seconds."""
    curve = solution.curve
    return solution.scores.tolist(), curve.losses, curve.valid_scores, curve.best_epoch


def curves():
    """What every method says of two splits, trained as one stack."""
    torch.set_num_threads(1)
    return [
        [values(one) for one in train_stacks([method] * 2, tasks)]
        for features in ("dense", "sparse")
        for tasks in [tasks_of(suiting(directed=True, features=features), 2)]
        for method in METHODS
    ]


def test_two_processes_give_the_same_bits_as_one():
    alone = curves()
    for found in together(2, curves):
        assert found == alone


def documented_method():
    """The row-wise method of docs/extend.md."""
    code = "\n".join(blocks(DOCS / "extend.md", "python"))
    imports, _, example = code.partition("@dataclass")
    example, _, _ = example.partition("unalike.register(")
    names = {"__name__": __name__}
    exec("import torch\nfrom torch import nn\n" + _imports(imports), names)
    exec("@dataclass" + example, names)
    return names["DeepLINK"]


def _imports(code):
    """The import lines of a program."""
    return "\n".join(line for line in code.splitlines() if " import " in line)


def documented_curves():
    torch.set_num_threads(1)
    method = documented_method()(training=SHORT)
    tasks = tasks_of(suiting(directed=True), 2)
    return [values(one) for one in train_stacks([method] * 2, tasks)]


def test_the_documented_row_wise_method_breaks_where_columns_are_divided():
    alone = documented_curves()
    for found in together(2, documented_curves):
        assert found == alone


BATCHINGS = [FullBatch(), RowSampler(size=1000)]
LONG = Training(epochs=50)


def real_curves(name, data):
    """The result on a real graph, method by method."""
    torch.set_num_threads(1)
    results = [
        run(find(name, data), kind(training=LONG, batching=batching), splits=[0])[0]
        for kind in (LINK, LINKX, LINKConcat)
        for batching in BATCHINGS
    ]
    return [(r.losses, r.grades, r.best_epoch, r.test) for r in results]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["squirrel", "cornell5"])
def test_real_graphs_have_one_curve_on_any_number_of_processes(data, name):
    alone = real_curves(name, data)
    for size in (2, 4):
        for found in together(size, real_curves, name, data):
            assert found == alone


def test_a_single_process_sends_nothing():
    world, numbers = World.current(), torch.rand(3)
    before = numbers.clone()
    assert (world.rank, world.size, world.is_main) == (0, 1, True)
    for talk in (
        world.all_reduce,
        world.recv_from_previous,
        world.isend_to_next,
        world.broadcast_from_last,
    ):
        talk(numbers)
        assert torch.equal(numbers, before)
    assert (
        world.all_min(3),
        world.broadcast_object("a"),
        world.all_gather_object("b"),
    ) == (
        3,
        "a",
        ["b"],
    )
    world.assert_equal_on_all_ranks({"version": 1})


@pytest.mark.parametrize("held", [range(0, 7), range(3, 11), range(6, 13)])
def test_some_rows_are_those_of_the_whole(monkeypatch, held):
    monkeypatch.setattr(init, "CHUNK_NUMEL", 9)
    torch.manual_seed(5)
    whole, after = uniform(0.5, 13, 4), torch.rand(3)
    torch.manual_seed(5)
    some = uniform_shard(0.5, 13, 4, held)
    assert torch.equal(some, whole[held.start : held.stop])
    assert torch.equal(torch.rand(3), after)


def message(work):
    try:
        work()
    except UserError as error:
        return str(error)


def differing():
    world = World.current()
    facts = {"torch": "2", "data": ["a", "b"][world.rank]}
    return message(partial(world.assert_equal_on_all_ranks, facts))


def test_what_processes_differ_in_is_named():
    (said,) = set(together(2, differing))
    assert said == "Processes differ in data: 0 has a, 1 has b."


def crowded():
    one = torch.tensor([0])
    graph = HAND_DRAWN["one node and its loop"]
    return message(partial(LINK().solve, Task(graph, one, one, ACCURACY)))


def test_more_processes_than_columns_are_refused():
    (said,) = set(together(2, crowded))
    assert said == "1 columns cannot be divided among 2; choose 1 to 1."


def test_a_method_that_needs_the_whole_graph_is_refused():
    with pytest.raises(UserError, match=r"gcn .* among 3 processes: .*, neighbours"):
        check_can_distribute(GCN(), World(0, 3))
    with pytest.raises(UserError, match="label-propagation cannot be divided"):
        check_can_distribute(LabelPropagation(), World(0, 3))
    check_can_distribute(GCN(), World())
    check_can_distribute(GCN(batching=RandomPartSampler()), World(1, 3))
    check_can_distribute(LINKX(batching=FullBatch()), World(2, 3))


def lost():
    if World.current().rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    began = time.monotonic()
    (task,) = tasks_of(suiting())
    return message(partial(LINK(training=SHORT).solve, task)), time.monotonic() - began


def test_a_lost_process_is_noticed_at_once():
    (said, seconds), _ = together(2, lost)
    assert said.startswith("Another process was lost or is late")
    assert seconds < 30


def test_a_port_in_use_is_an_error(monkeypatch, tmp_path):
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", free_port()))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(
            UserError, match=f"connect to the others at 127.0.0.1:{port}"
        ):
            join_and_work(0, 2, port, tmp_path / "answer", print)


class StoppedError(Exception):
    pass


KEPT = LINKX(
    hidden=8,
    layers=2,
    training=Training(epochs=8),
    batching=RowSampler(size=50, tables="lazy"),
)


DEALT = GCN(hidden=8, training=Training(epochs=8), batching=RandomPartSampler(parts=3))


def trained(path, saves=None, method=KEPT):
    """The curve of a training that is kept, or stopped after some saves."""
    torch.set_num_threads(1)
    save, done = Checkpoint.save, []

    def counted(self, state):
        save(self, state)
        done.append(state.epoch)
        if len(done) == saves:
            raise StoppedError

    Checkpoint.save = counted
    try:
        keep = Checkpoint(path, "key", every=0.0)
        tasks = tasks_of(suiting(), 1)
        return values(train_stacks([method], tasks, checkpoint=keep)[0]), done[0]
    except StoppedError:
        return None
    finally:
        Checkpoint.save = save


@pytest.mark.slow
def test_another_number_of_processes_resumes_from_a_checkpoint(tmp_path):
    whole, _ = trained(tmp_path / "whole")
    path = tmp_path / "state"
    together(3, trained, path, 3)
    together(2, trained, path, 2)
    assert [save.name for save in (tmp_path / "state.0").iterdir()] == ["5"]
    assert trained(path) == (whole, 6)
    assert not list(tmp_path.iterdir())
    trained(path, 3)
    assert together(2, trained, path) == [(whole, 4)] * 2
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_data_parallel_processes_resume_from_a_checkpoint(tmp_path):
    whole = together(2, trained, tmp_path / "whole", None, DEALT)
    path = tmp_path / "state"
    together(2, trained, path, 3, DEALT)
    found = together(2, trained, path, None, DEALT)
    assert [curve for curve, _ in found] == [curve for curve, _ in whole]
    assert [began for _, began in found] == [4, 4]
