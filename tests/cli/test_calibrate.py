"""`unalike train --calibrate --figures`: temperatures, and what is drawn."""

import json

import pytest
from graphs import suiting

from unalike import load_model, random_splits, save_graph
from unalike.cli.main import main
from unalike.datasets import find
from unalike.experiments.config import DatasetOptions, class_names


@pytest.fixture
def stored(tmp_path):
    graph = suiting(nodes=120, classes=3)
    splits = random_splits(graph.labels, count=2)
    about = {"class_names": ["low", "middle", "high"]}
    save_graph(tmp_path / "graph", graph, splits=splits, about=about)
    return str(tmp_path / "graph")


def test_calibration_is_printed(stored, capsys):
    asked = ["train", stored, "link", "--epochs", "20", "--calibrate"]
    assert main([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["calibration"]) == 2
    for row in found["calibration"]:
        assert row["temperature"] > 0
        assert 0 <= row["error_calibrated"] <= 100
    assert main(asked) == 0
    assert "the calibration error of the test nodes goes" in capsys.readouterr().out


@pytest.mark.parametrize("calibrate", [[], ["--calibrate"]], ids=["raw", "calibrated"])
def test_figures_are_drawn(stored, tmp_path, capsys, calibrate):
    pytest.importorskip("matplotlib")
    out = tmp_path / "new" / "figures"
    asked = ["train", stored, "link", "--epochs", "5", "--figures", str(out)]
    assert main([*asked, *calibrate]) == 0
    assert f"wrote {out / 'confusion.png'}" in capsys.readouterr().out.replace("\n", "")
    for name in ("confusion", "reliability"):
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_a_file_is_no_folder_for_figures(stored, tmp_path, capsys):
    (tmp_path / "taken").write_text("")
    taken = str(tmp_path / "taken")
    assert main(["train", stored, "link", "--figures", taken]) == 1
    assert "is not a folder for figures" in capsys.readouterr().err.replace("\n", " ")


def test_a_saved_model_keeps_the_temperature_of_its_split(stored, tmp_path, capsys):
    saved = {}
    for name, words in {"raw": [], "warm": ["--calibrate"]}.items():
        file = tmp_path / f"{name}.safetensors"
        asked = ["train", stored, "link", "--epochs", "20", "--save", str(file)]
        assert main([*asked, *words, "--json"]) == 0
        output = json.loads(capsys.readouterr().out)
        saved[name] = load_model(file)
    place = [row["split"] for row in output["splits"]].index(output["model"]["split"])
    warm = output["calibration"][place]["temperature"]
    assert saved["raw"].temperature == 1
    assert saved["warm"].temperature == output["model"]["temperature"] == warm
    shares = []
    for name in saved:
        file = str(tmp_path / f"{name}.safetensors")
        assert main(["predict", file, "--graph", stored, "--json"]) == 0
        shares.append(json.loads(capsys.readouterr().out)["scores"])
    assert [row["class"] for row in shares[0]] == [row["class"] for row in shares[1]]
    assert shares[0] != shares[1]


def test_figures_name_classes_also_when_they_are_weighed(stored):
    seen = DatasetOptions(class_weights="balanced").apply(find(stored))
    assert class_names(seen) == ["low", "middle", "high"]
