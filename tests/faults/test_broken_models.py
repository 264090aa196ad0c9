"""Damaged and crafted model files: refused in one line, without filling memory."""

import json
import resource
import struct
import subprocess
import sys
from contextlib import suppress

import pytest
from damage import damage
from graphs import graph_of_kind
from safetensors.torch import load_file, save_file

import unalike
from unalike import UserError, random_splits, save_graph
from unalike.inference import model_file
from unalike.methods import METHODS

TRAINING = unalike.Training(epochs=2)
SMALL = {
    "linkx": unalike.LINKX(hidden=4, training=TRAINING),
    "gcn": METHODS["gcn"](hidden=4, training=TRAINING),
    "fsgnn": METHODS["fsgnn"](hidden=4, training=TRAINING),
    "glognn": METHODS["glognn"](hidden=4, training=TRAINING),
    "views": METHODS["views"](folds=3),
    "views-trees": METHODS["views-trees"](folds=3),
}
"""Methods whose model files have different contents."""


def save_model(folder, method, kind="dense"):
    """The file of a model that is trained on a small graph."""
    graph = graph_of_kind(kind)
    splits = random_splits(graph.labels, count=1)
    stored = save_graph(folder / "graph", graph, splits=splits)
    path = folder / "model.safetensors"
    unalike.run(stored, method, options=unalike.RunOptions(model=path))
    return path


@pytest.fixture
def saved(tmp_path):
    """A saved model of LINKX."""
    return save_model(tmp_path, SMALL["linkx"])


def contents(path):
    model = unalike.load_model(path)
    about = model_file._metadata(model)
    return about, {name: one.tolist() for name, one in model.weights.items()}


@pytest.mark.parametrize("name", SMALL)
def test_a_damaged_model_is_refused_or_the_same(tmp_path, name, some):
    saved = save_model(tmp_path, SMALL[name])
    whole, expected = saved.read_bytes(), contents(saved)
    for rng in some:
        saved.write_bytes(damage(whole, rng))
        with suppress(UserError):
            assert contents(saved) == expected


@pytest.mark.parametrize("kind", ["sparse", "weights", "numbers"])
def test_a_damaged_model_of_another_graph_is_refused_or_the_same(tmp_path, kind, some):
    saved = save_model(tmp_path, SMALL["linkx"], kind)
    whole, expected = saved.read_bytes(), contents(saved)
    for rng in some:
        saved.write_bytes(damage(whole, rng))
        with suppress(UserError):
            assert contents(saved) == expected


def rewritten(path, change) -> None:
    """Change the metadata of a model, with a checksum that fits."""
    about = json.loads(model_file.read_header(path)[model_file.ABOUT])
    tensors = load_file(path)
    del about[model_file.DIGEST]
    change(about)
    about[model_file.DIGEST] = model_file._checksum(about, tensors)
    save_file(tensors, path, {model_file.ABOUT: model_file._dump(about)})


def setting(*keys, value):
    def change(about):
        for key in keys[:-1]:
            about = about[key]
        about[keys[-1]] = value

    return change


HUGE = {
    "nodes": setting("graph", "num_known", value=900_000_000),
    "many nodes": setting("graph", "num_known", value=10**15),
    "negative nodes": setting("graph", "num_known", value=-1),
    "features": setting("graph", "num_features", value=10**12),
    "classes": setting("graph", "num_classes", value=10**9),
    "layers": setting("options", "layers", value=10**8),
    "hidden": setting("options", "hidden", value=10**6),
    "text": setting("options", "layers", value="x" * 100),
    "none": setting("graph", "num_known", value=None),
    "classes as number": setting("classes", value=7),
    "temperature": setting("temperature", value="warm"),
}
LOAD = "import sys, unalike; unalike.load_model(sys.argv[1])"


BROKEN_SCALES = [7, {}, {"mean": 0.0, "std": 0.0}, {"mean": "x", "std": 1.0}]
BROKEN_SCALES += [{"mean": 0.0, "std": -1.0}, {"mean": 0.0, "std": 1e999}]


@pytest.mark.parametrize("scale", BROKEN_SCALES, ids=str)
def test_a_crafted_scale_of_numbers_is_refused(tmp_path, scale):
    path = save_model(tmp_path, SMALL["linkx"], "numbers")
    rewritten(path, setting("number_scale", value=scale))
    with pytest.raises(UserError):
        unalike.load_model(path)


@pytest.mark.parametrize("name", HUGE)
def test_a_crafted_header_is_refused_in_bounded_memory(saved, name):
    rewritten(saved, HUGE[name])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UserError):
        unalike.load_model(saved)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 200_000  # KiB


def test_a_method_without_edges_does_not_allocate_for_its_nodes(tmp_path):
    path = save_model(tmp_path, unalike.MLP(hidden=4, training=TRAINING))
    rewritten(path, setting("graph", "num_known", value=900_000_000))
    limited = f"ulimit -v 12000000; exec {sys.executable} -c '{LOAD}' {path}"
    ran = subprocess.run(["bash", "-c", limited], capture_output=True, text=True)
    assert ran.returncode == 0 or "UserError" in ran.stderr, ran.stderr


def test_a_header_that_promises_more_than_the_file_is_refused(saved):
    header = {"w": {"dtype": "F32", "shape": [10**12], "data_offsets": [0, 4 * 10**12]}}
    text = json.dumps(header).encode()
    saved.write_bytes(struct.pack("<Q", len(text)) + text)
    with pytest.raises(UserError):
        unalike.load_model(saved)
