"""Training that is killed goes on bit for bit, and only with its own state."""

import json
import os
import pickle
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from forked_processes import child
from graphs import suiting, tasks_of

from unalike import UserError, open_graph, random_splits, save_graph
from unalike.experiments.run import Experiment
from unalike.methods import base as methods
from unalike.methods.base import train_stacks
from unalike.methods.linkx import LINKX
from unalike.training.checkpoint import Checkpoint
from unalike.training.checkpoint_index import IndexWriter, unpickle
from unalike.training.loop import FullBatchEpochs
from unalike.training.state import Training

METHOD = LINKX(
    hidden=8, layers=3, dropout=0.5, inner_dropout=0.2, training=Training(epochs=9)
)
KEY = "these runs"


def solve(path: Path | None, key: str = KEY, runs: int = 2):
    torch.set_num_threads(1)
    keep = None if path is None else Checkpoint(path, key, every=0.0)
    tasks = tasks_of(suiting(nodes=80), runs)
    return train_stacks([METHOD] * runs, tasks, checkpoint=keep)


def values(solutions):
    """Scores and curve of each solution, without its seconds."""
    return [
        (
            one.scores.tolist(),
            one.curve.losses,
            one.curve.valid_scores,
            one.curve.best_epoch,
        )
        for one in solutions
    ]


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def after(count, function, then):
    """The function, which ends in something else when called for the last time."""
    calls = 0

    def counted(*arguments):
        nonlocal calls
        calls += 1
        found = function(*arguments)
        return then() if calls == count else found

    return counted


def killed_after_a_save(path: Path, count: int) -> None:
    Checkpoint.save = after(count, Checkpoint.save, die)
    solve(path)


def killed_before_a_save(path: Path, count: int) -> None:
    FullBatchEpochs.run_epoch = after(count, FullBatchEpochs.run_epoch, die)
    solve(path)


def killed_within_a_save(path: Path, count: int) -> None:
    finish = IndexWriter.finish

    def stop(self, **arguments):
        nonlocal count
        count -= 1
        return finish(self, **arguments) if count else die()

    IndexWriter.finish = stop
    solve(path)


def finished(path: Path, answer: Path) -> None:
    answer.write_bytes(pickle.dumps(values(solve(path))))


def ended(work, *arguments):
    process = child(work, *arguments)
    process.join()
    return process.exitcode


@pytest.mark.long
def test_killed_training_goes_on_bit_for_bit(tmp_path):
    folder, answer = tmp_path / "kept", tmp_path / "answer"
    path = folder / "state"
    for work, count in (
        (killed_after_a_save, 2),
        (killed_before_a_save, 2),
        (killed_within_a_save, 3),
    ):
        assert ended(work, path, count) == -signal.SIGKILL
        assert any(folder.iterdir())
    assert ended(finished, path, answer) == 0
    assert pickle.loads(answer.read_bytes()) == values(solve(None))
    assert list(folder.iterdir()) == []


class StoppedError(Exception):
    pass


def stop():
    raise StoppedError


def interrupted(path, monkeypatch, saves):
    """Leave a checkpoint behind, as if stopped after so many saves."""
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save", after(saves, Checkpoint.save, stop))
        with pytest.raises(StoppedError):
            solve(path)


@pytest.mark.parametrize("saves", [1, 5, 9, 10])
@pytest.mark.long
def test_interrupted_training_goes_on_where_it_was(tmp_path, monkeypatch, saves):
    interrupted(tmp_path / "state", monkeypatch, saves)
    epochs = []
    run_epoch = FullBatchEpochs.run_epoch
    monkeypatch.setattr(
        FullBatchEpochs, "run_epoch", lambda self: (epochs.append(1), run_epoch(self))
    )
    assert values(solve(tmp_path / "state")) == values(solve(None))
    assert len(epochs) == 9 - min(saves, 9) + 9
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_changes_nothing(tmp_path):
    assert values(solve(tmp_path / "state")) == values(solve(None))


def test_finished_stacks_are_not_trained_again(tmp_path, monkeypatch):
    monkeypatch.setattr(methods, "max_stacked_runs", lambda *_, **__: 1)
    interrupted(tmp_path / "state", monkeypatch, 9 + 1 + 4)
    assert len(list(tmp_path.iterdir())) == 2
    run_epoch = FullBatchEpochs.run_epoch
    epochs = []
    with monkeypatch.context() as patch:
        patch.setattr(
            FullBatchEpochs,
            "run_epoch",
            lambda self: (epochs.append(1), run_epoch(self)),
        )
        found = values(solve(tmp_path / "state"))
    assert len(epochs) == 9 - 4
    assert found == values(solve(None))
    assert list(tmp_path.iterdir()) == []


def test_the_state_of_other_runs_is_refused(tmp_path, monkeypatch):
    interrupted(tmp_path / "state", monkeypatch, 2)
    before = files(tmp_path / "state.0")
    with pytest.raises(UserError, match=r"state\.0 belongs to other runs"):
        solve(tmp_path / "state", "other runs")
    assert files(tmp_path / "state.0") == before


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("file", ["__0_0.distcp", "index.json"])
@pytest.mark.parametrize("damage", ["cut", "empty", "noise"])
def test_a_damaged_state_is_refused(tmp_path, monkeypatch, damage, file):
    interrupted(tmp_path / "state", monkeypatch, 2)
    path = tmp_path / "state.0" / "2" / file
    whole = path.read_bytes()
    damaged = {
        "cut": whole[: len(whole) // 2],
        "empty": b"",
        "noise": bytes(range(256)) * 9,
    }
    path.write_bytes(damaged[damage])
    with pytest.raises(UserError, match=r"state\.0 is no checkpoint"):
        solve(tmp_path / "state")


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "state.0").write_text("something else")
    with pytest.raises(UserError, match=r"state\.0 is a file"):
        solve(tmp_path / "state")


def test_the_state_of_a_network_of_another_shape_is_refused(tmp_path, monkeypatch):
    interrupted(tmp_path / "state", monkeypatch, 2)
    with pytest.raises(UserError, match="is no checkpoint"):
        solve(tmp_path / "state", runs=3)


def test_processes_with_other_numbers_of_threads_resume(tmp_path):
    keys = [
        '{"device": "x86_64 cpu, 1 threads"}',
        '{"device": "x86_64 cpu, 2 threads"}',
    ]
    partial = Checkpoint(tmp_path / "c", keys[0], every=0.0, lasting=True)
    tasks = tasks_of(suiting(nodes=80), 2)
    first = train_stacks([METHOD] * 2, tasks, checkpoint=partial)
    resumed = replace(partial, key=keys[1])
    assert values(train_stacks([METHOD] * 2, tasks, checkpoint=resumed)) == values(
        first
    )
    with pytest.raises(UserError, match="other runs"):
        other = replace(partial, key='{"device": "arm64 cpu, 1 threads"}')
        train_stacks([METHOD] * 2, tasks, checkpoint=other)


def test_the_key_of_a_checkpoint_has_no_number_of_threads(tmp_path):
    graph = suiting(nodes=80)
    save_graph(tmp_path / "g", graph, splits=random_splits(graph.labels, count=1))
    experiment = Experiment.load(open_graph(tmp_path / "g"), None, 0)
    identity = experiment.identity(METHOD, "cpu")
    assert "threads" not in identity["device"]
    assert identity["data"]


class Harmful:
    """An object whose pickle makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_crafted_index_runs_nothing(tmp_path, monkeypatch):
    interrupted(tmp_path / "state", monkeypatch, 2)
    save = tmp_path / "state.0" / "2"
    (save / "index.json").unlink()
    (save / ".metadata").write_bytes(pickle.dumps(Harmful(tmp_path / "harm")))
    with pytest.raises(UserError, match=r"state\.0 is no checkpoint .* not allowed"):
        solve(tmp_path / "state")
    assert not (tmp_path / "harm").exists()


def test_a_class_of_an_older_index_takes_no_state(tmp_path, monkeypatch):
    patch = b"ctorch.distributed.checkpoint.metadata\nMetadata\n(N}Vx\nK\x01stb."
    with pytest.raises(TypeError):
        unpickle(patch)


def test_an_index_names_files_of_its_folder_only(tmp_path, monkeypatch):
    interrupted(tmp_path / "state", monkeypatch, 2)
    index = tmp_path / "state.0" / "2" / "index.json"
    text = index.read_text("utf-8")
    index.write_text(text.replace("__0_0.distcp", "../../other"), "utf-8")
    with pytest.raises(UserError, match=r"index\.json is damaged"):
        solve(tmp_path / "state")


def test_a_checkpoint_of_another_graph_of_the_same_name_is_refused(tmp_path):
    stored = []
    for folder, size in (("a", 60), ("b", 60)):
        graph = suiting(nodes=size, seed=len(stored))
        splits = random_splits(graph.labels, count=1)
        stored.append(save_graph(tmp_path / folder / "g", graph, splits=splits))
    first, second = (Experiment.load(one, None, 0) for one in stored)
    keys = [
        json.dumps(each.identity(METHOD, "cpu"), sort_keys=True)
        for each in (first, second)
    ]
    path = tmp_path / "state"
    for key in keys[:1]:
        keep = Checkpoint(path, key, every=0.0, lasting=True)
        train_stacks([METHOD], first.tasks(METHOD), checkpoint=keep)
    with pytest.raises(UserError, match="belongs to other runs"):
        keep = Checkpoint(path, keys[1])
        train_stacks([METHOD], second.tasks(METHOD), checkpoint=keep)


def test_folders_that_are_no_saves_are_kept(tmp_path, monkeypatch):
    notes = tmp_path / "state.0" / "2021" / "notes.txt"
    notes.parent.mkdir(parents=True)
    notes.write_text("mine")
    interrupted(tmp_path / "state", monkeypatch, 3)
    solve(tmp_path / "state")
    assert files(tmp_path) == {notes: b"mine"}


def test_a_folder_in_the_place_of_a_save_is_refused(tmp_path):
    notes = tmp_path / "state.0" / "1" / "notes.txt"
    notes.parent.mkdir(parents=True)
    notes.write_text("mine")
    with pytest.raises(UserError, match="exists and is not a checkpoint"):
        solve(tmp_path / "state")
    assert files(tmp_path) == {notes: b"mine"}
