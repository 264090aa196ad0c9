"""Model files, checks of their contents, and predictions for new nodes."""

import json
import math
import pickle
import zipfile
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse
import torch
from graphs import drawn, suiting, tasks_of
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from unalike import LINKX, MLP, Model, Training, UserError, load_model
from unalike.inference import model_file
from unalike.inference.explain import explain
from unalike.inference.model import custom_ids, fit_model
from unalike.inference.model_file import ids_from_tensors, ids_to_tensors

QUICK = Training(epochs=4)


def trained(method=None, **graph):
    (task,) = tasks_of(suiting(nodes=60, **graph))
    method = method or LINKX(hidden=4, training=QUICK)
    return fit_model(method, task)[0]


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.safetensors"
    trained().save(path)
    return path


def refused(path, match):
    with pytest.raises(UserError, match=match) as error:
        load_model(path)
    assert "\n" not in str(error.value)


def test_truncated_files_are_refused(saved):
    content = saved.read_bytes()
    for length in (0, 1, 8, 9, 50, len(content) // 2, len(content) - 1):
        saved.write_bytes(content[:length])
        refused(saved, "truncated|no model|damaged")
    saved.write_bytes(content + b"more")
    refused(saved, "damaged")


def test_the_same_model_is_the_same_file(saved):
    others = [saved.with_name(f"{number}.safetensors") for number in range(5)]
    for other in others:
        trained().save(other)
    assert {other.read_bytes() for other in others} == {saved.read_bytes()}


def test_changed_metadata_is_refused(saved):
    saved.write_bytes(saved.read_bytes().replace(b"linkx", b"linky"))
    refused(saved, "sha256 differs")


def test_changed_weights_are_refused(saved):
    content = bytearray(saved.read_bytes())
    content[-3] ^= 1
    saved.write_bytes(bytes(content))
    refused(saved, "sha256 differs")


def test_other_file_formats_are_named_and_not_read(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(pickle.dumps({"weights": [1.0] * 100}))
    refused(path, "is a pickle; it could run code and is not read")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("bomb", bytes(50_000_000))
    refused(path, "is a zip archive.*not unpacked")
    torch.save({"a": torch.ones(3)}, path)
    refused(path, "is a zip archive")
    path.write_bytes(b"id,class\n" * 10)
    refused(path, "no model of unalike")
    refused(tmp_path, "cannot be read")
    refused(tmp_path / "nothing", "There is no file")


def test_headers_with_huge_sizes_are_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    huge = {"weights/a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}
    for header in (json.dumps(huge).encode(), b"[" * 100_000, b"{" * 100_000):
        path.write_bytes(len(header).to_bytes(8, "little") + header)
        refused(path, "truncated|damaged|no model")


def rewritten(path, change):
    """The file with changed metadata and a valid checksum."""
    with safe_open(path, "pt") as opened:
        about = json.loads(opened.metadata()[model_file.ABOUT])
    tensors = load_file(path)
    del about[model_file.DIGEST]
    change(about, tensors)
    about[model_file.DIGEST] = model_file._checksum(about, tensors)
    save_file(tensors, path, {model_file.ABOUT: json.dumps(about)})


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda about, _: about.update(format=99), "has the format 99, written by"),
        (lambda about, _: about.update(method="linx"), "No method 'linx'.*'linkx'"),
        (lambda about, _: about["options"].update(hidden=5), "damaged"),
        (lambda about, _: about["graph"].pop("num_known"), "damaged"),
        (lambda about, _: about.pop("classes"), "damaged"),
        (lambda about, _: about.update(classes=["a"]), "1 classes in place of 2"),
        (lambda about, _: about.update(temperature=0), "the temperature 0.0"),
        (lambda about, _: about.update(temperature="hot"), "damaged"),
        (lambda _, tensors: tensors.pop("weights/mlp_a.first.weight"), "damaged"),
    ],
)
def test_inconsistent_metadata_is_refused(saved, change, match):
    rewritten(saved, change)
    refused(saved, match)


def test_safetensors_files_of_others_are_refused(tmp_path):
    save_file({"a": torch.ones(3)}, tmp_path / "a.safetensors")
    refused(tmp_path / "a.safetensors", "holds tensors, but is no model of unalike")


def test_existing_files_are_not_overwritten(saved):
    before = saved.read_bytes()
    with pytest.raises(UserError, match="exists already"):
        trained().save(saved)
    assert saved.read_bytes() == before
    with pytest.raises(UserError, match="There is no folder"):
        trained().save(saved.parent / "none" / "model.safetensors")
    assert [one.name for one in saved.parent.iterdir()] == [saved.name]


def test_unregistered_methods_are_not_saved(tmp_path):
    class Own(MLP):
        pass

    with pytest.raises(UserError, match="Own is not in unalike's table"):
        trained(Own(training=QUICK)).save(tmp_path / "a.safetensors")


@pytest.mark.parametrize(
    "names",
    [
        pa.array(["ann", "", "ñandú"]),
        pa.array([7, -3, 2**40]),
        pa.array([2**64 - 1, 1, 0], pa.uint64()),
        pa.array(["a", "bob", "cy", "d"])[1:],
    ],
)
def test_node_ids_survive_a_round_trip_through_tensors(names):
    assert ids_from_tensors(ids_to_tensors(names)).to_pylist() == names.to_pylist()
    assert custom_ids(names) is names
    assert custom_ids(pa.array(range(3))) is None


def test_neighbours_are_looked_up_by_user_ids():
    model = replace(trained(), names=pa.array([f"n{i}" for i in range(60)]))
    features = torch.ones(2, 2)
    prediction = model.predict([(0, "n3"), (1, "n4"), (0, "n9"), (0, "x")], features)
    rows = scipy.sparse.csr_array(([1, 1, 1], ([0, 0, 1], [3, 9, 4])), shape=(2, 60))
    assert torch.equal(
        prediction.probabilities, model.predict(rows, features).probabilities
    )
    assert prediction.unknown == 1
    assert set(prediction.labels) <= set(model.classes)
    assert prediction.probabilities.sum(1).tolist() == pytest.approx([1, 1])


@pytest.mark.parametrize(
    ("edges", "features", "match"),
    [
        ([(0, 1)], np.ones((1, 3)), "features are 1 x 3; the model was trained on 2"),
        ([(0, 1)], np.ones(2), "two dimensions"),
        ([(0, 1)], np.array([[1, np.nan]]), "Feature 1 of node 0 is not a finite"),
        ([(0, 1)], np.array([["a", "b"]]), "Features are numbers"),
        ([(0, 1)], None, "features are 1 x 0"),
        ([(5, 1)], np.ones((1, 2)), "source 5; ids run from 0 to 0"),
        (np.array([[0, 1, 2]]), np.ones((1, 2)), "An edge is a pair"),
        ([(0, 1), (0, "a")], np.ones((1, 2)), "all numbers or all text"),
        (scipy.sparse.eye_array(3).tocsr(), np.ones((3, 2)), "3 x 3.*3 x 60"),
    ],
)
def test_wrong_new_nodes_are_refused(edges, features, match):
    with pytest.raises(UserError, match=match):
        trained().predict(edges, features)


def test_another_graph_is_refused():
    model = trained()
    model.graph_info.check(suiting(nodes=60))
    with pytest.raises(UserError, match="knows 60 nodes with 2 features"):
        model.graph_info.check(suiting(nodes=61))
    with pytest.raises(UserError, match="another graph"):
        model.graph_info.check(suiting(nodes=60, seed=1))
    with pytest.raises(UserError, match="rows of 60 columns"):
        model.scores(suiting(nodes=61))
    with pytest.raises(UserError, match="trained on 2 features"):
        model.scores(drawn([(0, 1)], 60, features=3))


def test_methods_without_edges_predict_from_features_alone():
    assert trained().reads_edges
    model: Model = trained(MLP(training=QUICK))
    assert not model.reads_edges
    assert len(model.predict(features=np.ones((3, 2))).labels) == 3


@pytest.mark.parametrize("temperature", [1e-3, 0.3, 2.0, 1e3])
def test_the_temperature_changes_probabilities_and_no_prediction(temperature):
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(500, 2, generator=generator)
    scores[:250, 1] = scores[:250, 0] * (1 + 2**-23)  # next to each other
    model = trained()
    prediction = replace(model, temperature=temperature).to_prediction(scores)
    wanted = (scores.double() / temperature).softmax(1)
    torch.testing.assert_close(prediction.probabilities, wanted)
    assert prediction.labels == model.to_prediction(scores).labels


def test_the_temperature_is_saved_and_defaults_to_one(tmp_path):
    model = replace(trained(), temperature=2.5)
    model.save(tmp_path / "warm.safetensors")
    assert load_model(tmp_path / "warm.safetensors").temperature == 2.5
    rewritten(tmp_path / "warm.safetensors", lambda about, _: about.pop("temperature"))
    assert load_model(tmp_path / "warm.safetensors").temperature == 1


def test_contributions_add_up_at_every_temperature():
    model = trained()
    new, _ = model.new_nodes([(0, 3), (0, 9)], torch.ones(1, 2))
    (before,), (after,) = (
        list(explain(replace(model, temperature=temperature), new))
        for temperature in (1.0, 4.0)
    )
    assert after.log_odds == pytest.approx(before.log_odds / 4)
    odds = math.log(after.probability / (1 - after.probability))
    assert odds == pytest.approx(after.log_odds, abs=1e-5)
    shares = [push.share for push in after.pushes]
    assert shares == pytest.approx([push.share / 4 for push in before.pushes])
    assert sum(shares) + after.rest == pytest.approx(after.log_odds)


def test_a_loaded_model_builds_its_network_once(saved, monkeypatch):
    build, calls = LINKX.build_module, []

    def counted(method, graph):
        calls.append(graph.num_nodes)
        return build(method, graph)

    monkeypatch.setattr(LINKX, "build_module", counted)
    load_model(saved).scores(suiting(nodes=60))
    assert calls == [0]
