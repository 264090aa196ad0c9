"""Model files of format 2 and checkpoints of that time are still read."""

import shutil
from pathlib import Path

import pytest
import torch
from graphs import LATER_METHODS, suiting, tasks_of
from safetensors.torch import load_file

from unalike import METHODS, UserError, load_model
from unalike.inference import model_file
from unalike.methods.base import train_stacks
from unalike.options import options_of, with_options
from unalike.training.checkpoint import Checkpoint
from unalike.training.loop import FullBatchEpochs

DATA = Path(__file__).parents[2] / "data"
MODELS = sorted((DATA / "models_format_2").glob("*.safetensors"))
CHECKPOINTS = sorted((DATA / "checkpoints").glob("*.safetensors"))
DEEP = {"layers": 3, "hidden": 8, "edge_layers": 3, "feature_layers": 2}
OPTIONS = {**DEEP, "jump": "lstm", "heads": 2, "epochs": 6}
"""Of the runs whose checkpoints are stored."""


def graph_of(path, *, directed):
    features = path.stem.rpartition("-")[2]
    return suiting(nodes=20, features=features, directed=directed)


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_a_model_file_of_format_2_gives_the_logits_of_its_time(path):
    model = load_model(path)
    wanted = load_file(DATA / "models_format_2_scores.safetensors")[path.stem]
    found = model.scores(graph_of(path, directed=True))
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_every_trained_method_has_a_model_file_of_format_2():
    names = {path.stem.rsplit("-", 2)[0] for path in MODELS}
    kinds = METHODS.items()
    trained = {name for name, kind in kinds if hasattr(kind, "build_module")}
    assert names == trained - LATER_METHODS


@pytest.mark.parametrize("path", MODELS[::7], ids=lambda path: path.stem)
def test_a_model_of_format_2_is_saved_in_the_format_of_today(path, tmp_path):
    model = load_model(path)
    model.save(tmp_path / "new.safetensors")
    again = load_model(tmp_path / "new.safetensors")
    graph = graph_of(path, directed=True)
    assert torch.equal(again.scores(graph), model.scores(graph))


def test_another_format_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(model_file, "FORMAT", 4)
    model = load_model(MODELS[0])
    model.save(tmp_path / "new.safetensors")
    monkeypatch.undo()
    with pytest.raises(UserError, match="has the format 4"):
        load_model(tmp_path / "new.safetensors")


@pytest.mark.parametrize("path", CHECKPOINTS, ids=lambda path: path.stem)
def test_training_goes_on_from_a_checkpoint_of_that_time(path, tmp_path, monkeypatch):
    name = path.stem.rpartition("-")[0]
    shutil.copytree(path.with_name(f"{path.stem}.0"), tmp_path / "state.0")
    usual = METHODS[name]()
    known = options_of(usual)
    options = {key: value for key, value in OPTIONS.items() if key in known}
    method = with_options(usual, options, name)
    epochs, run_epoch = [], FullBatchEpochs.run_epoch
    monkeypatch.setattr(
        FullBatchEpochs, "run_epoch", lambda one: (epochs.append(1), run_epoch(one))
    )
    found = train_stacks(
        [method] * 2,
        tasks_of(graph_of(path, directed=False), 2),
        checkpoint=Checkpoint(tmp_path / "state", "these runs"),
    )
    assert len(epochs) == 3
    for run, wanted in load_file(path).items():
        scores = found[int(run)].scores
        torch.testing.assert_close(scores, wanted, rtol=1e-3, atol=1e-4)
