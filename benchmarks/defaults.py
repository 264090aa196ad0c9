"""The default options of methods on graphs of the user, next to alternatives.

python benchmarks/defaults.py           validation scores on small graphs
python benchmarks/defaults.py --json    one JSON document

Each graph is trained as one in memory: random splits, early stopping after 200 epochs
without a better score. Test labels are not used.
"""

import argparse
import json
import sys
from statistics import mean

import unalike
from unalike import METHODS
from unalike.options import options_of, with_options

DATASETS = ("reed98", "chameleon", "cora")
TRIED = ("gcn", "gat", "sage", "mlp", "link", "gpr-gnn")
ALTERNATIVES = (
    {},
    {"lr": 0.003},
    {"dropout": 0.2},
    {"hidden": 64},
    {"weight_decay": 0.0001},
    {"residual": True},
)
"""Options that replace the defaults; those that a method lacks are left out."""


def scores(
    name: str, graphs: dict[str, unalike.Graph], options: argparse.Namespace
) -> list[dict[str, object]]:
    """The mean validation score of each alternative on each graph."""
    default = METHODS[name]()
    rows = []
    for changed in ALTERNATIVES:
        known = options_of(default)
        if not changed.keys() <= known.keys():
            continue
        if changed and all(known[key] == value for key, value in changed.items()):
            continue
        method = with_options(default, {**changed, "epochs": options.epochs}, name)
        valid = {
            dataset: unalike.run(graph, method, splits=range(options.splits)).valid_mean
            for dataset, graph in graphs.items()
        }
        words = " ".join(f"{key}={value}" for key, value in changed.items())
        rows.append({"method": name, "options": words or "default", "valid": valid})
        print(rows[-1], file=sys.stderr, flush=True)
    return rows


def main() -> None:
    """Train the alternatives and print their validation scores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=DATASETS)
    parser.add_argument("--methods", nargs="+", default=TRIED)
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    graphs = {name: unalike.find(name).prepared() for name in options.datasets}
    rows = [row for name in options.methods for row in scores(name, graphs, options)]
    if options.json:
        print(json.dumps({"epochs": options.epochs, "rows": rows}))
        return
    for row in rows:
        valid = row["valid"]
        cells = "  ".join(f"{valid[name]:.1f}" for name in valid)
        average = mean(valid.values())
        print(f"{row['method']:8}  {row['options']:18}  {cells}  mean {average:.1f}")


if __name__ == "__main__":
    main()
