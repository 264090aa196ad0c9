"""What early stopping costs and saves, by the validation scores of all epochs.

python benchmarks/patience.py           methods with their defaults, on small graphs
python benchmarks/patience.py --json    one JSON document

The graphs are those that the rules of `unalike advise` were made on and that are small.
Test labels are not used.
"""

import argparse
import json
from collections.abc import Sequence
from statistics import mean

import unalike
from unalike import METHODS, Training

DATASETS = ("texas", "wisconsin", "cornell", "chameleon-filtered")
TRIED = ("mlp", "link", "linkx", "gcn")
PATIENCES = (50, 100, 200, 300)


def stopped(scores: Sequence[float], patience: int) -> tuple[float, int]:
    """The best score that early stopping finds, and the epochs that it runs."""
    best = 0
    for epoch, score in enumerate(scores):
        if score > scores[best]:
            best = epoch
        elif epoch - best >= patience:
            return scores[best], epoch + 1
    return scores[best], len(scores)


def row(curves: dict[str, list[list[float]]], patience: int) -> dict[str, object]:
    """Mean epochs, and the points of validation score that are lost, in the mean of
    the splits of a method on a graph."""
    found = {
        name: [stopped(scores, patience) for scores in splits]
        for name, splits in curves.items()
    }
    lost = {
        name: 100 * mean(max(scores) for scores in curves[name])
        - 100 * mean(score for score, _ in runs)
        for name, runs in found.items()
    }
    worst = max(lost, key=lost.__getitem__)
    return {
        "patience": patience,
        "epochs": mean(epochs for runs in found.values() for _, epochs in runs),
        "lost": mean(lost.values()),
        "most_lost": lost[worst],
        "worst": worst,
    }


def main() -> None:
    """Train all epochs once, then print what each patience would have found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", default=DATASETS)
    parser.add_argument("--methods", nargs="+", default=TRIED)
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    training = Training(epochs=options.epochs)
    curves = {}
    for name in options.methods:
        for dataset in options.datasets:
            runs = unalike.run(dataset, METHODS[name](training=training))
            curves[f"{name} on {dataset}"] = [result.grades for result in runs]
    rows = [row(curves, patience) for patience in PATIENCES]
    if options.json:
        print(json.dumps({"epochs": options.epochs, "rows": rows}))
        return
    print("patience  epochs  points lost  at most")
    for one in rows:
        print("{patience:8}  {epochs:6.0f}  {lost:11.2f}".format(**one), end="  ")
        print("{most_lost:.2f} ({worst})".format(**one))


if __name__ == "__main__":
    main()
