"""Draw docs/pictures/layers.svg from the stored runs of `unalike bench layers`."""

import json
from pathlib import Path

from unalike.reports.benchmarks import plot_layer_times
from unalike.reports.plotting import save_figure

ROOT = Path(__file__).parents[1]
FILES = ("layers-h200", "layers-pokec-h200", "layers-pokec-gat-h200")
"""Bench files of one device; each has other layers or graphs."""


def main() -> None:
    """Draw all files as one figure."""
    paths = (ROOT / "results" / "bench" / f"{name}.json" for name in FILES)
    found = [json.loads(path.read_text("utf-8")) for path in paths]
    rows = [row for run in found for row in run["layers"]]
    figure = plot_layer_times({"device": found[0]["device"], "layers": rows})
    save_figure(figure, ROOT / "docs" / "pictures" / "layers.svg")


if __name__ == "__main__":
    main()
