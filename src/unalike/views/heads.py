"""Heads on rows of views: gradient-boosted trees, and the examples they learn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.util import find_spec
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from unalike.data.metrics import Metric
from unalike.progress import notify
from unalike.views.tree_ensemble import TreeEnsemble

MANY_ROWS = 20_000
"""Train rows from which trees take larger steps and one seed is enough."""
MAX_TREE_ROWS = 200_000
"""Train rows, and rows to stop by, that trees are fitted on at most."""
BIN_ROWS = 20_000
"""Train rows by which LightGBM divides columns into bins."""
NUM_SEEDS = 4
MAX_TREES = 800
MAX_QUICK_TREES = 120
MIN_LOG = 1e-9

LIGHTGBM_METRICS = {"roc-auc": "auc", "average-precision": "average_precision"}
"""Metrics that LightGBM can stop by; the error rate stands for the others."""

Matrix = Float[Tensor, "rows columns"]
Scores = Float[Tensor, "rows classes"]


@dataclass(frozen=True, eq=False)
class Examples:
    """Rows of views with their labels, to fit a head on and to stop it by."""

    x: Matrix
    y: Int[Tensor, " rows"]
    x_stop: Float[Tensor, "stop columns"]
    y_stop: Int[Tensor, " stop"]
    widths: list[int]
    """Columns of each view."""
    num_classes: int
    metric: Metric
    seed: int

    def sample(self, max_rows: int) -> Examples:
        """The same with at most `max_rows` rows to fit on, and to stop by."""
        generator = torch.Generator().manual_seed(self.seed)
        train, stop = (
            torch.randperm(count, generator=generator)[:max_rows].sort().values
            if count > max_rows
            else slice(None)
            for count in (len(self.y), len(self.y_stop))
        )
        return replace(
            self,
            x=self.x[train],
            y=self.y[train],
            x_stop=self.x_stop[stop],
            y_stop=self.y_stop[stop],
        )


@runtime_checkable
class Scorer(Protocol):
    """A fitted head: log probabilities of rows."""

    def __call__(self, x: Matrix) -> Scores: ...

    def to_tensors(self) -> dict[str, Tensor]:
        """What a file of the model has of it."""


@dataclass(frozen=True, eq=False)
class ColumnScores:
    """A model fitted on all train labels: its log probabilities are columns of a row.

    A train row has seen its own label: no other head may read these columns.
    """

    group: ClassVar[str]
    """The group of its columns, the last ones of a row."""

    name: str
    weights: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def view(self) -> str:
        return f"{self.group}:{self.name}"

    def __call__(self, x: Scores) -> Scores:
        return x

    def to_tensors(self) -> dict[str, Tensor]:
        return dict(self.weights)

    @classmethod
    def from_tensors(
        cls, tensors: Mapping[str, Tensor], name: str, num_classes: int
    ) -> ColumnScores:
        """The head of a file."""
        return cls(name, tensors)


class BaseScores(ColumnScores):
    """A base method as a head; its weights are with those of the other base models."""

    group = "base-heads"


def prefixed(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors with a prefix in front of their names."""
    return {prefix + name: tensor for name, tensor in tensors.items()}


def within(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names have a prefix, without it."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


@dataclass(frozen=True, eq=False)
class Trees:
    """The mean probability of fitted trees of several seeds."""

    models: Sequence[TreeEnsemble]

    def __call__(self, x: Matrix) -> Scores:
        rows = x.numpy()
        mean = np.mean([model(rows) for model in self.models], 0)
        return torch.from_numpy(mean).clamp(min=MIN_LOG).log().float()

    def to_tensors(self) -> dict[str, Tensor]:
        tensors: dict[str, Tensor] = {}
        for number, model in enumerate(self.models):
            tensors |= prefixed(f"{number}/", model.to_tensors())
        return tensors

    @classmethod
    def from_tensors(
        cls, tensors: Mapping[str, Tensor], widths: Sequence[int], num_classes: int
    ) -> Trees:
        """The trees of a file, after checking sizes and indices."""
        models: list[TreeEnsemble] = []
        while f"{len(models)}/root" in tensors:
            own = within(tensors, f"{len(models)}/")
            models.append(TreeEnsemble.from_tensors(own, sum(widths), num_classes))
        if not models:
            raise ValueError("there are no trees")
        return cls(models)


@dataclass(frozen=True)
class TreeSettings:
    """Sizes of gradient-boosted trees."""

    lr: float
    patience: int
    """Trees without a better score of the rows to stop by."""
    seeds: int = 1
    max_trees: int = MAX_TREES
    column_share: float = 0.15
    """Share of the columns that each tree may split by."""

    @classmethod
    def full(cls, rows: int) -> TreeSettings:
        """Settings of a final fit."""
        if rows > MANY_ROWS:
            return cls(lr=0.1, patience=30, column_share=0.3)
        return cls(lr=0.07, patience=40, seeds=NUM_SEEDS)

    @classmethod
    def quick(cls) -> TreeSettings:
        """Settings to compare views."""
        return cls(lr=0.2, patience=15, max_trees=MAX_QUICK_TREES)

    @classmethod
    def guess(cls, rows: int) -> TreeSettings:
        """Settings of heads that guess labels for the next round."""
        full = cls.full(rows)
        return replace(
            full, lr=2 * full.lr, seeds=1, max_trees=MAX_TREES // 2, patience=20
        )


def fit_trees(examples: Examples, settings: TreeSettings | None = None) -> Trees:
    """Gradient-boosted trees: LightGBM where it is installed, else scikit-learn's.

    Of very many rows a random sample is used.
    """
    examples = examples.sample(MAX_TREE_ROWS)
    settings = settings or TreeSettings.full(len(examples.y))
    if has_lightgbm():
        return _lightgbm(examples, settings)
    notify_without_lightgbm()
    seeds = range(examples.seed, examples.seed + settings.seeds)
    return Trees([_scikit_learn(examples, settings, seed) for seed in seeds])


@cache
def has_lightgbm() -> bool:
    """Whether LightGBM is installed."""
    return find_spec("lightgbm") is not None


@cache
def notify_without_lightgbm() -> None:
    """Say once which trees are used."""
    notify(
        "LightGBM is not installed: the trees are those of scikit-learn "
        "(pip install 'unalike[trees]')."
    )


def min_rows_of_leaf(rows: int) -> int:
    """Train rows that a leaf needs."""
    return min(20, max(2, rows // 60))


def _lightgbm(examples: Examples, settings: TreeSettings) -> Trees:
    import lightgbm

    classes = examples.num_classes
    objective: dict[str, Any] = {"objective": "binary"}
    if classes > 2:
        objective = {"objective": "multiclass", "num_class": classes}
    error = "binary_error" if classes == 2 else "multi_error"
    binning = {
        "max_bin": 63,
        "bin_construct_sample_cnt": BIN_ROWS,
        "enable_bundle": False,
        "min_data_in_leaf": min_rows_of_leaf(len(examples.y)),
        "num_threads": torch.get_num_threads(),
        "verbosity": -1,
    }
    fixed = binning | {
        **objective,
        "metric": LIGHTGBM_METRICS.get(examples.metric.name, error),
        "learning_rate": settings.lr,
        "num_leaves": 15,
        "feature_fraction": settings.column_share,
        "bagging_fraction": 0.7,
        "bagging_freq": 1,
        "lambda_l2": 5,
        "deterministic": True,
        "force_col_wise": True,
    }
    rows = lightgbm.Dataset(examples.x.numpy(), examples.y.numpy(), params=binning)
    watched: dict[str, Any] = {}
    if len(examples.y_stop):
        stop = rows.create_valid(examples.x_stop.numpy(), examples.y_stop.numpy())
        patience = lightgbm.early_stopping(settings.patience, verbose=False)
        watched = {"valid_sets": [stop], "callbacks": [patience]}
    models = []
    for seed in range(examples.seed, examples.seed + settings.seeds):
        seeds = {"bagging_seed": seed, "feature_fraction_seed": seed}
        model = lightgbm.train(fixed | seeds, rows, settings.max_trees, **watched)
        size = max(1, model.best_iteration) if watched else model.current_iteration()
        models.append(TreeEnsemble.from_lightgbm(model, size, classes))
    return Trees(models)


def _scikit_learn(
    examples: Examples, settings: TreeSettings, seed: int
) -> TreeEnsemble:
    from sklearn.ensemble import HistGradientBoostingClassifier

    classes = examples.num_classes
    model = HistGradientBoostingClassifier(
        learning_rate=min(1.0, 2 * settings.lr),
        max_iter=max(1, min(MAX_TREES // 4, settings.max_trees)),
        max_leaf_nodes=15,
        max_features=settings.column_share,
        l2_regularization=5,
        min_samples_leaf=min_rows_of_leaf(len(examples.y)),
        early_stopping=False,
        random_state=seed,
    )
    model.fit(examples.x.numpy(), examples.y.numpy())
    present = torch.from_numpy(model.classes_)

    def spread(p: np.ndarray) -> np.ndarray:
        full = np.zeros((len(p), classes))
        full[:, present] = p
        return full

    best = model.n_iter_
    if len(examples.y_stop):
        weight = torch.ones(len(examples.y_stop))
        stages = [
            float(examples.metric.score(torch.from_numpy(p), examples.y_stop, weight))
            for p in map(spread, model.staged_predict_proba(examples.x_stop.numpy()))
        ]
        # The metric may be undefined on these rows: all of them of one class.
        best = best if np.isnan(stages).all() else int(np.nanargmax(stages)) + 1
    return TreeEnsemble.from_scikit_learn(model, best, classes)
