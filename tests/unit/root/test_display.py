"""Objects as tables in terminals and notebooks, and tables that fit a width."""

import json
import math
import pickle
from html.parser import HTMLParser
from io import StringIO

import pytest
import torch
from rich.console import Console

import unalike
from unalike.display import Column, TextTable
from unalike.options import options_of
from unalike.reports.tables import ResultTable, StatisticCell

WICKED = "<script>alert('x')</script>[bold]&"


class Reader(HTMLParser):
    """Collects the tags and the cells of a page."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.texts = set(), []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)

    def handle_data(self, text):
        self.texts.append(text)


def graph(num_classes=2, directed=True):
    ends = torch.tensor([0, 1, 2]), torch.tensor([1, 2, 2])
    labels = torch.tensor([0, 1, -1])
    return unalike.Graph.from_edges(
        *ends, num_nodes=3, labels=labels, num_classes=num_classes, directed=directed
    )


def result(**changed):
    known = {
        "dataset": WICKED,
        "method": "mine",
        "options": {"depth": 1},
        "metric": "accuracy",
        "split": 0,
        "seed": 0,
        "train": 90.0,
        "valid": 70.0,
        "test": 60.0,
        "best_epoch": 3,
        "seconds": 1.5,
        "peak_memory_mb": 1.0,
        "device": "cpu",
        "versions": {},
        "losses": [0.5] * 3,
        "grades": [0.5] * 3,
    }
    return unalike.Result(**{**known, **changed})


def report():
    return ResultTable(WICKED, {WICKED: {"edges": StatisticCell(1, "1")}}, {})


def solution():
    return unalike.Solution(torch.tensor([[0.0, 1.0], [0.0, 2.0], [3.0, 0.0]]))


SHOWN = {
    "graph": graph,
    "measures": lambda: unalike.measure(graph()),
    "result": result,
    "runs": lambda: unalike.Runs([result()]),
    "report": report,
    "solution": solution,
}


def rich_text(shown):
    console = Console(width=200, file=StringIO())
    console.print(shown)
    return console.file.getvalue()


@pytest.mark.parametrize("name", SHOWN)
def test_terminals_and_notebooks_show_the_same_text(name):
    shown = SHOWN[name]()
    read = Reader(shown._repr_html_())
    text = " ".join(rich_text(shown).split())
    assert read.texts
    for cell in read.texts:
        assert " ".join(cell.split()) in text


@pytest.mark.parametrize("name", SHOWN)
def test_html_has_no_tags_from_text(name):
    html = SHOWN[name]()._repr_html_()
    tags = {"table", "thead", "tbody", "tr", "th", "td", "p", "b", "i"}
    assert Reader(html).tags <= tags


def test_markup_in_names_is_escaped():
    assert WICKED in "".join(Reader(result()._repr_html_()).texts)
    assert WICKED in rich_text(unalike.Runs([result()]))


def test_a_graph_shows_its_sizes_and_classes():
    assert repr(graph()) == "Graph(3 nodes, 3 directed edges, 0 features, 2 classes)"
    assert "3 undirected edges" in repr(graph(directed=False))
    read = Reader(graph()._repr_html_()).texts
    assert read[-3:] == ["1", "1", "1"]
    assert "unlabelled" in read


def test_many_classes_are_only_counted():
    assert "unlabelled" not in graph(num_classes=40)._repr_html_()


def test_a_result_shows_its_command_line():
    options = options_of(unalike.LabelPropagation(hops=2))
    known = result(method="label-propagation", options=options)
    assert "--hops 2" in known.summary().note


def test_a_result_of_an_own_method_has_no_command():
    assert result().summary().note == ""


def test_runs_are_means_over_splits_of_each_setting():
    runs = unalike.Runs(
        result(split=split, test=test, options={"depth": depth, "width": 8})
        for depth, tests in ((1, (60.0, 62.0)), (2, (70.0, 70.0)))
        for split, test in enumerate(tests)
    )
    rows = runs.summary().rows
    assert [(row[2], row[4], row[6]) for row in rows] == [
        ("depth=1", "2", "61.00 ± 1.41"),
        ("depth=2", "2", "70.00 ± 0.00"),
    ]


def test_runs_are_a_list():
    runs = unalike.Runs([result()])
    assert runs == [result()]
    assert isinstance(runs, list)
    assert pickle.loads(pickle.dumps(runs)) == runs


def test_a_list_without_runs_has_no_rows():
    assert unalike.Runs().summary().rows == []


def test_measures_are_a_dictionary():
    found = unalike.measure(graph(), only=["edge_homophily"])
    assert isinstance(found, dict)
    assert json.loads(json.dumps(found))["num_nodes"] == 3
    assert pickle.loads(pickle.dumps(found)) == found


def test_measures_without_meaning_are_a_dash():
    found = unalike.measure(graph(), only=["unbiased_homophily"])
    assert math.isnan(found["unbiased_homophily"])
    assert found.summary().rows[0][1] == "–"


def test_a_solution_counts_its_predictions():
    assert solution().summary().rows == [["nodes", "1", "2"]]


COLUMNS = [
    Column("name", ["texas", "cornell"]),
    Column("nodes", ["183", "183"], align_right=True),
    Column("meaning", ["a few words " * 6, ""], wrap=True),
]


def test_a_table_that_fits_is_one_table():
    (table,) = TextTable(COLUMNS).fit(200)
    assert table.headings == ["name", "nodes", "meaning"]
    assert table.rows[1] == ["cornell", "183", ""]


def test_a_wide_table_becomes_several_with_the_first_column():
    tables = TextTable(COLUMNS).fit(16)
    assert [each.headings for each in tables] == [
        ["name", "nodes"],
        ["name", "meaning"],
    ]
    assert tables[0].width == len("cornell") + 2 + len("nodes")


def test_optional_columns_are_dropped_before_a_table_is_split():
    (table,) = TextTable(COLUMNS).fit(16, optional=["meaning", "nodes"])
    assert table.headings == ["name", "nodes"]


def test_columns_are_aligned_and_empty_headings_have_no_line():
    text = rich_text(TextTable(COLUMNS[:2]))
    assert text.splitlines()[0].split() == ["name", "nodes"]
    assert text.splitlines()[1].rstrip() == "texas      183"
    rows = [["edges", "12"]]
    assert rich_text(TextTable.from_rows("", ["", ""], rows)).split() == rows[0]
