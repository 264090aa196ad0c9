"""`unalike table` with and without data."""

import json

import pytest
import torch

from unalike import Graph, UserError, datasets, save_graph
from unalike.cli.main import main


@pytest.fixture(autouse=True)
def only_texas(tmp_path, monkeypatch):
    graph = Graph.from_edges(
        torch.tensor([0, 1]),
        torch.tensor([1, 2]),
        num_nodes=3,
        labels=torch.tensor([0, 0, 1]),
        directed=True,
    )

    texas = save_graph(tmp_path / "texas", graph)

    def find(name, data=None):
        if name != "texas":
            raise UserError(f"No files of {name}.")
        return texas

    monkeypatch.setattr(datasets, "find", find)
    monkeypatch.setenv("COLUMNS", "140")


def test_deviations_are_marked_and_missing_data_is_said(capsys):
    assert main(["table", "statistics-geom-gcn", "--format", "markdown"]) == 0
    out, err = capsys.readouterr()
    assert "3* (183)" in out
    assert "no data (295)" in out
    assert out.endswith("\n- wisconsin: no data, No files of wisconsin.\n")
    assert err == ""


def test_a_narrow_terminal_cuts_nothing(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["table", "statistics-geom-gcn"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines()[1:])) <= 60
    assert "…" not in out
    assert out.count("chameleon") > 1
    assert "no data (216,933)" in out


@pytest.mark.parametrize(
    ("form", "start"),
    [("markdown", "Statistics of"), ("latex", r"\begin{table}"), ("csv", "dataset,")],
)
def test_formats(capsys, form, start):
    assert main(["table", "statistics-geom-gcn", "--format", form]) == 0
    assert capsys.readouterr().out.startswith(start)


@pytest.mark.parametrize("name", ["statistics-proposed", "two-hop"])
def test_json_is_one_document(capsys, name):
    assert main(["table", name, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["table"] == name
    assert found["missing"]["penn94"] == "No files of penn94."
    cells = found["rows"]["arxiv-year"].values()
    assert all(cell["ours"] is None and cell["printed"] for cell in cells)


def test_an_unknown_table_is_a_mistake(capsys):
    assert main(["table", "two-hops"]) == 1
    assert "Did you mean 'two-hop'" in capsys.readouterr().err
