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
    TUNED,
    VIEWS_MODEL,
    document,
    frozen,
    predictions,
    scores,
    studies,
)
from graphs import LATER_METHODS

import unalike

TRAINING_TOLERANCE = 5e-3
"""Training amplifies the rounding of another CPU to 2e-3; another seed to over 1e-2."""


def agree(found, expected, tolerance=1e-5):
    for name in ("columns", "ids", "classes"):
        assert found[name] == expected[name]
    pairs = zip(found["probabilities"], expected["probabilities"], strict=True)
    assert all(one == pytest.approx(other, abs=tolerance) for one, other in pairs)


@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.long
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
    unsaved |= {unalike.Views, unalike.ViewsTrees}
    unsaved |= {unalike.METHODS[name] for name in LATER_METHODS}
    assert {type(one) for one in saved} == {*unalike.METHODS.values()} - unsaved


def test_a_model_of_views_with_an_mlp_of_one_layer_per_view_predicts_as_before(
    tmp_path,
):
    found = predictions(VIEWS_MODEL, tmp_path, *NEW_NODES)
    agree(found, frozen("predictions")["views mlp"]["new"])


@pytest.mark.parametrize("name", TRAINED)
def test_training_again_gives_the_predictions_of_a_saved_model(tmp_path, name):
    graph, *options = TRAINED[name]
    again = tmp_path / "again.safetensors"
    document("train", graph, *options, "--device", "cpu", "--no-refit", "--save", again)
    found = predictions(again, tmp_path, "--graph", graph)
    agree(found, frozen("predictions")[name]["known"], TRAINING_TOLERANCE)


def begun_here(state, graph, method):
    """Let a checkpoint say that its runs began with this device and these versions.

    Runs are not resumed with others.
    """
    (save,) = state.iterdir()
    text = (save / "runs.json").read_text("utf-8")
    facts, end = json.JSONDecoder().raw_decode(text)
    assert (facts["dataset"], facts["method"]) == (graph.name, method)
    quick = unalike.LabelPropagation()
    (here,) = unalike.run(unalike.open_graph(graph), quick, splits=[0])
    facts |= {"device": here.device, "versions": here.versions}
    text = json.dumps(facts, sort_keys=True) + text[end:]
    (save / "runs.json").write_text(text, "utf-8")


@pytest.mark.parametrize("name", RESUMED)
@pytest.mark.long
def test_an_interrupted_training_resumes_from_its_checkpoint(tmp_path, name):
    shutil.copytree(CHECKPOINTS / name, tmp_path / name)
    begun_here(tmp_path / name / "state.0", *RESUMED[name][:2])
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


@pytest.fixture
def interrupted_search(tmp_path):
    pytest.importorskip("optuna")
    folder = tmp_path / "tune"
    shutil.copytree(CHECKPOINTS / "tune", folder)
    begun_here(folder / "base.0", TUNED[1], "mlp")
    return folder


def test_an_interrupted_search_resumes_to_the_same_end(interrupted_search):
    found = studies(document(*TUNED, "--checkpoint", interrupted_search))
    for one, expected in zip(found, frozen("tuned"), strict=True):
        assert one.pop("options") == pytest.approx(expected.pop("options"))
        assert one == pytest.approx(expected)
    assert not interrupted_search.exists()


@pytest.mark.long
def test_a_resumed_search_reads_what_settings_were_worth(interrupted_search):
    file = interrupted_search / "judged.jsonl"
    first, second = map(json.loads, file.read_text("utf-8").splitlines())
    for best in (first, second):
        rows = [[options, 2.0 * (options == best[0])] for options, _ in (first, second)]
        copy = interrupted_search.with_name(f"best {best[1]} {best is first}")
        shutil.copytree(interrupted_search, copy)
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (copy / "judged.jsonl").write_text(text, "utf-8")
        study, *_ = studies(document(*TUNED, "--checkpoint", copy))
        assert study["options"] == json.loads(best[0])
