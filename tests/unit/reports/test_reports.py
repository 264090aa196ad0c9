"""Cells, highlighting and formats of tables, interpretations and figures."""

import csv
import math
import sys

import pytest
import torch

from unalike import Graph, UserError, datasets, save_graph
from unalike.formatting import json_safe
from unalike.measures.interpretation import interpret
from unalike.reports import paper_figures
from unalike.reports.dataset_tables import TABLES, TEXT_COLUMNS, read_published
from unalike.reports.paper_figures import FIGURES
from unalike.reports.plotting import check_figure_path, save_figure
from unalike.reports.tables import (
    FORMATS,
    HIGHLIGHT_RULES,
    ResultTable,
    ScoreCell,
    StatisticCell,
    csv_text,
    latex,
    markdown,
)

GRAPH = Graph.from_edges(
    torch.tensor([0, 0, 1, 2]),
    torch.tensor([0, 1, 2, 3]),
    num_nodes=5,
    labels=torch.tensor([0, 0, 1, 1, 2]),
    directed=True,
)


@pytest.mark.parametrize(
    ("cell", "deviates", "text"),
    [
        (StatisticCell(0.2312, ".23"), False, "0.23 (0.23)"),
        (StatisticCell(0.236, ".23"), True, "0.24* (0.23)"),
        (StatisticCell(932, "931"), True, "932* (931)"),
        (StatisticCell(1362229, "1362229"), False, "1,362,229 (1,362,229)"),
        (StatisticCell(None, ".470"), False, "no data (0.470)"),
        (StatisticCell(0.336, ".341", error=0.01), False, "0.336 (0.341)"),
        (StatisticCell(0.310, ".341", error=0.01), True, "0.310* (0.341)"),
        (StatisticCell(math.nan, ".341"), True, "nan* (0.341)"),
        (StatisticCell(7, ""), False, "7"),
    ],
)
def test_cells_mark_differences_beyond_rounding_and_errors(cell, deviates, text):
    assert cell.differs is deviates
    assert cell.text == text


def test_names_are_escaped_in_markdown_and_latex():
    name = r"a|b<i>\{x}#$^~_&%"
    rows = {name: {"edge_homophily": StatisticCell(0.1119, ".12")}}
    report = ResultTable(name, rows, {})
    line = next(line for line in markdown(report).splitlines() if "0.11*" in line)
    assert line.startswith(r"| a\|b&lt;i>")
    escaped = (
        r"a|b<i>\textbackslash{}\{x\}\#\$\textasciicircum{}\textasciitilde{}\_\&\%"
    )
    assert latex(report).count(escaped) == 2
    assert rf"{escaped} & 0.11* (0.12) \\" in latex(report)


def test_every_format_holds_every_cell():
    rows = {"texas": {"edge_homophily": StatisticCell(0.1119, ".12")}}
    report = ResultTable("A title", rows, {})
    assert "| texas | 0.11* (0.12) |" in FORMATS["markdown"](report)
    assert r"texas & 0.11* (0.12) \\" in FORMATS["latex"](report)
    (line,) = csv.DictReader(FORMATS["csv"](report).splitlines())
    assert line == {
        "dataset": "texas",
        "statistic": "edge_homophily",
        "ours": "0.1119",
        "printed": "0.12",
        "deviates": "true",
    }


@pytest.mark.parametrize("name", TABLES)
def test_every_table_has_published_numbers(name):
    for line in read_published(name):
        words = {"dataset", *TEXT_COLUMNS}
        assert all(line[key] for key in line if key in words)
        assert all(float(line[key]) >= 0 for key in line if key not in words)


@pytest.mark.parametrize(
    ("name", "column", "dataset", "text"),
    [
        ("statistics-geom-gcn", "context", "actor", "Actors in movies"),
        ("statistics-proposed", "class_types", "snap-patents", "time granted"),
    ],
)
def test_statistics_have_no_contexts_and_class_types(
    name, column, dataset, text, tmp_path
):
    report = TABLES[name](data=tmp_path)
    cell = report.rows[dataset][column]
    assert cell.text == cell.to_dict["printed"] == text
    assert column.replace("_", " ") in report.headings
    assert text in markdown(report) and text in latex(report)
    assert f"{dataset},{column},,{text},false" in csv_text(report)


def test_tables_compare_present_datasets_and_name_missing_ones(tmp_path, monkeypatch):
    texas = save_graph(tmp_path / "texas", GRAPH)

    def find(name, data=None):
        if name != "texas":
            raise UserError(f"No files of {name}.")
        return texas

    monkeypatch.setattr(datasets, "find", find)
    report = TABLES["statistics-geom-gcn"]()
    assert report.rows["texas"]["num_edges"] == StatisticCell(3, "309")
    assert report.rows["texas"]["edge_homophily"].ours == pytest.approx(3 / 4)
    assert report.rows["cornell"]["num_nodes"] == StatisticCell(None, "183")
    assert report.missing["cornell"] == "No files of cornell."
    assert "texas" not in report.missing


def test_a_note_that_is_a_sentence_has_one_full_stop(tmp_path, monkeypatch):
    stored = save_graph(tmp_path / "texas", GRAPH)
    notes = ["texas is without its features."]
    monkeypatch.setattr(type(stored), "remarks", lambda _: notes)
    monkeypatch.setattr(datasets, "find", lambda name, data=None: stored)
    report = TABLES["statistics-geom-gcn"]()
    for text in (markdown(report), latex(report)):
        assert "without its features." in text
        assert "features.." not in text


def test_nan_is_null_in_json():
    assert json_safe({"a": [1.0, math.nan], "b": "x"}) == {"a": [1.0, None], "b": "x"}


@pytest.mark.parametrize(
    ("rule", "highlighted"),
    [
        ("best", {1}),
        ("three best", {0, 1, 4}),
        ("best up to one standard deviation", {0, 1, 4}),
        ("none", set()),
    ],
)
def test_ties_go_to_the_smaller_std(rule, highlighted):
    column = [(70.0, 2.0), (70.0, 1.0), None, (60.0, 9.0), (69.5, 1.0), (60.0, 9.0)]
    assert HIGHLIGHT_RULES[rule](column) == highlighted


@pytest.mark.parametrize("rule", ["best", "three best"])
def test_equal_values_are_shaded_alike(rule):
    column = [(70.0, 2.0), None, (70.0, 2.0), (70.0, 2.0), (70.0, 2.0), (60.0, 9.0)]
    assert HIGHLIGHT_RULES[rule](column) == {0, 2, 3, 4}


def test_the_json_key_of_highlighted_cells_is_shaded():
    values = ScoreCell(mean=1.0, highlighted=True).to_dict
    assert values["shaded"] is True
    assert "highlighted" not in values


def test_two_hop_homophily_is_compared_with_one_hop():
    found = {"two_hop_node_homophily": 0.5, "node_homophily": 0.3}
    assert "try LINKX" in interpret("two_hop_node_homophily", found)
    found["node_homophily"] = 0.6
    assert "less than" in interpret("two_hop_node_homophily", found)
    del found["node_homophily"]
    assert "50%" in interpret("two_hop_node_homophily", found)


def test_zero_adjusted_homophily_means_independence():
    assert "independent" in interpret("adjusted_homophily", {"adjusted_homophily": 0.0})


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.long
def test_figures_are_written_and_reproducible(name, suffix, tmp_path, monkeypatch):
    monkeypatch.setattr(paper_figures, "GRAPHS", 2)
    for place in ("one", "two"):
        figure = FIGURES[name].draw(dict.fromkeys("abcd", GRAPH))
        save_figure(figure, tmp_path / f"{place}.{suffix}")
    one, two = (
        (tmp_path / f"{place}.{suffix}").read_bytes() for place in ("one", "two")
    )
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert one.startswith(starts[suffix])
    assert one == two


def test_unknown_figure_formats_are_refused(tmp_path):
    with pytest.raises(UserError, match=r"\.png, \.svg, \.pdf; 'figure.gif' does not"):
        check_figure_path(tmp_path / "figure.gif")
    with pytest.raises(UserError, match="no folder"):
        check_figure_path(tmp_path / "nowhere" / "figure.png")


def test_missing_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError, match=r"pip install 'unalike\[plots\]'"):
        FIGURES["examples"].draw({})


def test_example_graphs_have_the_published_homophily():
    from unalike.measures import measure
    from unalike.reports.paper_figures import examples

    printed = [(1, 1), (0, 0), (0.5, 0), (0.33, 0), (0.53, 0.07), (0.66, 0.04)]
    for example, (edge, class_) in zip(examples(), printed, strict=True):
        found = measure(example.graph)
        assert round(found["edge_homophily"], 2) == edge
        assert round(found["class_homophily"], 2) == class_
