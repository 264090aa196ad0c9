"""The charts of a report: every specification is drawn by Vega itself."""

import subprocess
import sys

import pytest

from unalike.errors import UserError
from unalike.methods import METHODS
from unalike.reports.site import charts

vl_convert = pytest.importorskip("vl_convert", reason="no vl-convert here")

CELLS = [
    {"true": a, "predicted": b, "from": a, "to": b, "count": 30, "fraction": 0.8}
    for a in "xyz"
    for b in "xyz"
]
BINS = [
    {"bin": "0 to 1", "nodes": 5, "confidence": 0.4, "accuracy": 0.3},
    {"bin": "1 to 2", "nodes": 9, "confidence": 0.8, "accuracy": 0.9},
]
COST = [
    {
        "method": name,
        "family": "row-wise",
        "mean": 70.0,
        "low": 69.0,
        "high": 71.0,
        "seconds": seconds,
        "memory_mb": 1000 * seconds,
        "lines": [name],
    }
    for name, seconds in (("mlp", 0.5), ("linkx", 20.0))
]
DEGREES = [{"degree": 2**i, "nodes": 4000 // 4**i} for i in range(6)]
VALUES = ["8", "16"]
BEST = [{"value": v, "valid": 70.0, "test": 69.0, "configs": 3} for v in VALUES]
CURVES = [
    {"split": f"split {split}", "epoch": epoch, "value": epoch**0.5 + split}
    for split in range(3)
    for epoch in range(1, 20)
]
EXAMPLES = {
    "curves": ({"rows": CURVES}, {}),
    "confusion": ({"rows": CELLS}, {"classes": ["x", "y", "z"], "longest_label": 1}),
    "compatibility": ({"rows": CELLS}, {"classes": ["x", "y", "z"]}),
    "reliability": ({"rows": BINS}, {}),
    "degrees": ({"rows": DEGREES, "means": DEGREES}, {}),
    "sensitivity": ({"rows": BEST, "configs": BEST}, {"values": VALUES}),
    "cost_time": ({"rows": COST}, {}),
    "cost_memory": ({"rows": COST}, {}),
}


def drawn(name):
    """A chart as SVG, with its data bound as the page does it."""
    document = charts.charts_document()
    datasets, values = EXAMPLES[name]
    spec = document["specs"][name]
    params = [
        {**one, "value": values[one["name"]]} if one["name"] in values else one
        for one in spec.get("params", [])
    ]
    bound = {**spec, "datasets": datasets, "params": params}
    return vl_convert.vegalite_to_svg(
        {**bound, "width": 300, "height": 300},
        vl_version=charts.vega_lite_version(),
        config=document["config"],
    )


def test_every_chart_has_an_example():
    assert set(charts.charts_document()["specs"]) == set(EXAMPLES)


@pytest.mark.parametrize(
    ("name", "marks"),
    [
        ("curves", {"var(--muted)": 1}),
        ("confusion", {"80 %": 9}),
        ("compatibility", {".80": 9}),
        ("reliability", {"var(--family-1)": 2}),
        ("degrees", {"var(--accent)": 1}),
        ("sensitivity", {">16<": 1}),
        ("cost_time", {">linkx<": 1, "var(--family-0)": 4}),
        ("cost_memory", {">mlp<": 1, "peak memory, MB": 1}),
    ],
)
def test_vega_draws_the_data_of_a_chart(name, marks):
    svg = drawn(name)
    assert {text: svg.count(text) >= count for text, count in marks.items()} == (
        dict.fromkeys(marks, True)
    )


def test_a_curve_is_drawn_for_each_split():
    svg = drawn("curves")
    assert svg.count('stroke-width="1.25"') == 3


def test_large_matrices_have_no_numbers_in_their_cells(monkeypatch):
    monkeypatch.setitem(
        EXAMPLES,
        "confusion",
        ({"rows": CELLS}, {"classes": ["x", "y", "z", *range(27)]}),
    )
    svg = drawn("confusion")
    assert "80 %" not in svg
    assert ">x<" not in svg


def test_every_family_of_methods_has_a_colour():
    assert {method.family for method in METHODS.values()} < set(charts.FAMILIES)


def test_the_library_defines_one_global_and_needs_no_network():
    script = charts.library()
    assert script.splitlines()[:2] == [charts.NOTICE.strip(), "(() => {"]
    assert "window.vegaEmbed" in script
    assert "import(" not in script


def test_the_library_is_read_from_the_cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    charts.library.cache_clear()
    first = charts.library()
    charts.library.cache_clear()
    (stored,) = (tmp_path / "unalike" / "report").iterdir()
    assert stored.read_text("utf-8") in first
    stored.write_text("stored", "utf-8")
    assert "stored" in charts.library()
    assert len(charts.library()) < len(first)
    charts.library.cache_clear()


@pytest.mark.parametrize("package", ["altair", "vl_convert"])
def test_a_report_without_the_extra_says_what_to_install(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    charts.library.cache_clear()
    charts.charts_document.cache_clear()
    with pytest.raises(UserError, match=r"pip install 'unalike\[report\]'"):
        charts.library()


@pytest.mark.long
def test_the_command_needs_the_extra_only_to_write_a_report():
    script = "import sys, unalike.cli.report; print('altair' in sys.modules)"
    out = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert out.stdout == "False\n"
