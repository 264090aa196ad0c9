"""Tables in narrow terminals: numbers are never cut."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from unalike.display import Column, TextTable

NUMBERS = st.floats(-1e6, 1e6).map("{:.4f}".format)


@given(
    width=st.integers(40, 100),
    name=st.text("abc /", min_size=1, max_size=90),
    columns=st.lists(st.lists(NUMBERS, min_size=2, max_size=2), min_size=1, max_size=9),
)
@settings(max_examples=40, deadline=None)
def test_every_number_is_shown_whole(width, name, columns):
    table = TextTable(
        [
            Column("name", [name, "b"]),
            *(
                Column(f"value {number}", cells, align_right=True)
                for number, cells in enumerate(columns)
            ),
        ]
    )
    file = io.StringIO()
    Console(file=file, width=width).print(table)
    shown = file.getvalue()
    assert "…" not in shown
    words = shown.split()
    assert all(cell in words for cells in columns for cell in cells)
    assert max(map(len, shown.splitlines())) <= width


@pytest.mark.parametrize("width", [60, 80])
def test_a_benchmark_table_fits(width):
    headings = ["epoch of", "hidden", *(f"library {n} in float32" for n in range(5))]
    rows = [["linkx", "128", *["4.123 ms"] * 5]]
    table = TextTable.from_rows("", headings, rows, right=headings[1:])
    file = io.StringIO()
    Console(file=file, width=width).print(table)
    assert file.getvalue().count("4.123 ms") == 5
