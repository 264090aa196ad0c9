"""Saved models and checkpoints of c1b98d6 load and give the same numbers."""

import json
import shutil

import pytest
from commands import (
    CHECKPOINTS,
    MODELS,
    NEW_NODES,
    RESUMED,
    ROW_WISE,
    TRAINED,
    document,
    frozen,
    predictions,
    scores,
)

import unalike


def agree(found, expected):
    for name in ("columns", "ids", "classes"):
        assert found[name] == expected[name]
    pairs = zip(found["probabilities"], expected["probabilities"], strict=True)
    assert all(one == pytest.approx(other, abs=1e-5) for one, other in pairs)


@pytest.mark.parametrize("name", TRAINED)
def test_a_saved_model_predicts_known_nodes_as_before(tmp_path, name):
    graph, *_ = TRAINED[name]
    found = predictions(MODELS / f"{name}.safetensors", tmp_path, "--graph", graph)
    agree(found, frozen("predictions")[name]["known"])


@pytest.mark.parametrize("name", ROW_WISE)
def test_a_saved_model_predicts_new_nodes_as_before(tmp_path, name):
    found = predictions(MODELS / f"{name}.safetensors", tmp_path, *NEW_NODES)
    agree(found, frozen("predictions")[name]["new"])


def test_there_is_a_saved_model_of_every_method_that_can_be_saved():
    saved = {unalike.load_model(path).method for path in MODELS.iterdir()}
    unsaved = {unalike.LabelPropagation, unalike.CorrectAndSmooth}
    assert {type(one) for one in saved} == {*unalike.METHODS.values()} - unsaved


@pytest.mark.parametrize("name", TRAINED)
def test_training_again_gives_the_predictions_of_a_saved_model(tmp_path, name):
    graph, *options = TRAINED[name]
    again = tmp_path / "again.safetensors"
    document("train", graph, *options, "--device", "cpu", "--save", again)
    found = predictions(again, tmp_path, "--graph", graph)
    agree(found, frozen("predictions")[name]["known"])


def of_this_machine(key, words):
    """The text that names interrupted runs, as if they had begun here.

    Runs resume with the device and the versions they began with.
    """
    facts, end = json.JSONDecoder().raw_decode(key)
    dataset, name, *_ = words
    method = unalike.METHODS["label-propagation"]()
    (here,) = unalike.run(unalike.open_graph(dataset), method, splits=[0])
    assert (facts["dataset"], facts["method"]) == (dataset.name, name)
    facts |= {"device": here.device, "versions": here.versions}
    return json.dumps(facts, sort_keys=True) + key[end:]


@pytest.mark.parametrize("name", RESUMED)
def test_an_interrupted_training_resumes_from_its_checkpoint(tmp_path, name):
    shutil.copytree(CHECKPOINTS / name, tmp_path / name)
    (save,) = (tmp_path / name / "state.0").iterdir()
    key = save / "runs.json"
    key.write_text(of_this_machine(key.read_text("utf-8"), RESUMED[name]), "utf-8")
    words = (*RESUMED[name], "--checkpoint", tmp_path / name / "state")
    found = scores(document("train", *words))
    for one, expected in zip(found, frozen("resumed")[name], strict=True):
        assert one == pytest.approx(expected)
    assert not any((tmp_path / name).iterdir())


@pytest.mark.parametrize("name", RESUMED)
def test_a_checkpoint_lets_training_begin_where_it_was_interrupted(tmp_path, name):
    shutil.copytree(CHECKPOINTS / name, tmp_path / name)
    (save,) = (tmp_path / name / "state.0").iterdir()
    assert 0 < int(save.name) < 8
    (save / "runs.json").write_text("other runs", "utf-8")
    words = (*RESUMED[name], "--checkpoint", tmp_path / name / "state")
    with pytest.raises(AssertionError, match="belongs to other runs"):
        document("train", *words)
