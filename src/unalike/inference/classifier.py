"""NodeClassifier, the scikit-learn estimator."""

from __future__ import annotations

import inspect
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from unalike.data.graph import Graph
from unalike.data.metrics import METRICS
from unalike.data.task import Curve, Task
from unalike.errors import InputError, lookup
from unalike.inference.input_validation import (
    ClassWeight,
    as_graph,
    as_ids,
    class_weights,
    encode_labels,
    given_holdout,
    lookup_labels,
    stratified_holdout,
)
from unalike.inference.model import Model, check_trainable, fit_model
from unalike.inference.model_file import load_model
from unalike.inference.new_nodes import AnyFeatures
from unalike.methods import METHODS, name_of
from unalike.methods.base import Method, TrainedMethod
from unalike.options import options_of, with_options

# Protocol: what scikit-learn expects of an estimator, without needing it.


Estimator = TypeVar("Estimator", bound="ParamsMixin")
NESTED = "__"
COLUMN = "A column-vector y was passed when a 1d array was expected."


class ParamsMixin:
    """An object whose parameters are those of its constructor, by the same names."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, and options of the method such as `method__hidden`."""
        plain = {name: getattr(self, name) for name in self._names()}
        return plain | self._deep() if deep else plain

    def set_params(self: Estimator, **wanted: Any) -> Estimator:
        """Other values for some parameters."""
        known = self.get_params()
        for name in wanted:
            if name not in known:
                raise InputError(
                    f"Invalid parameter '{name}' of {type(self).__name__}; "
                    f"valid are {', '.join(known)}."
                )
        for name, value in wanted.items():
            if NESTED not in name:
                setattr(self, name, value)
        self._set_deep({name: v for name, v in wanted.items() if NESTED in name})
        return self

    def __sklearn_clone__(self: Estimator) -> Estimator:
        """An unfitted copy; a graph is shared and not copied."""
        return type(self)(**self.get_params(deep=False))

    def __repr__(self) -> str:
        usual = inspect.signature(type(self)).parameters
        told = (
            f"{name}={value!r}"
            for name, value in self.get_params(deep=False).items()
            if value is not usual[name].default
        )
        return f"{type(self).__name__}({', '.join(told)})"

    def _deep(self) -> dict[str, Any]:
        return {}

    def _set_deep(self, wanted: dict[str, Any]) -> None:
        pass

    @classmethod
    def _names(cls) -> list[str]:
        return list(inspect.signature(cls).parameters)


def not_fitted(estimator: object) -> Exception:
    """The error of what was not fitted, scikit-learn's own where that is used."""
    told = f"This {type(estimator).__name__} is not fitted yet; call `fit` first."
    if "sklearn" not in sys.modules:
        return InputError(told)
    from sklearn.exceptions import NotFittedError

    return NotFittedError(told)


def warn_of_column() -> None:
    """Warn of labels in a column, in scikit-learn's words and kind where it is used."""
    kind: type[Warning] = UserWarning
    if "sklearn" in sys.modules:
        from sklearn.exceptions import DataConversionWarning

        kind = DataConversionWarning
    warnings.warn(COLUMN, kind, stacklevel=5)


def classifier_tags() -> Any:
    """What scikit-learn may know of a classifier of nodes."""
    from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

    return Tags(
        estimator_type="classifier",
        target_tags=TargetTags(required=True),
        classifier_tags=ClassifierTags(),
        input_tags=InputTags(sparse=True),
    )


# NodeClassifier: a method behind the interface that scikit-learn made common.


Classifier = TypeVar("Classifier", bound="NodeClassifier")


class NodeClassifier(ParamsMixin):
    """Fit a method on the nodes of a graph, and predict those of any.

    Without a `graph` of its own, X is the graph: `fit(adjacency, labels, features)`
    learns from its labelled nodes, `predict()` answers for all of them, and
    `predict(rows, features)` for new ones, a row each. With `graph=` X holds numbers
    of nodes, as samples for `cross_val_score` or `GridSearchCV`; options of the method
    are parameters such as `method__hidden`.
    """

    classes_: np.ndarray
    n_features_in_: int
    temperature_: float
    scores_: Float[Tensor, "nodes classes"] | None
    curve_: Curve | None
    model_: Model | None
    """None where a method learns nothing that could be used on other nodes."""

    def __init__(
        self,
        method: str | Method = "linkx",
        *,
        graph: Any = None,
        class_weight: ClassWeight = None,
        metric: str = "accuracy",
        validation: Any = 0.2,
        patience: int | None = None,
        calibrate: bool = False,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.method = method
        self.graph = graph
        self.class_weight = class_weight
        self.metric = metric
        self.validation = validation
        self.patience = patience
        self.calibrate = calibrate
        self.seed = seed
        self.device = device

    def fit(
        self: Classifier, X: Any, y: Any = None, features: AnyFeatures | None = None
    ) -> Classifier:
        """Learn from the labelled nodes; None, NaN and -1 are no labels.

        A share of each class is set aside (`validation`, or the nodes it names): the
        weights of the epoch that grades best on them are kept, and training stops when
        `patience` epochs brought nothing better. With `calibrate` probabilities are
        taken at the temperature that suits them best.
        """
        own = self.graph is None
        graph = as_graph(X if own else self.graph, features)
        labels, classes = self._targets(X, y, graph)
        graph = replace(graph, labels=labels, num_classes=len(classes))
        method, task = self._method(), self._task(graph, classes)
        model: Model | None = None
        if isinstance(method, TrainedMethod):
            model, solution = fit_model(method, task, device=self.device)
        else:
            solution = method.solve(task, device=self.device)
        warm = solution.temperature(task.valid, labels) if self.calibrate else 1.0
        names = classes.tolist()
        self.model_ = model and replace(model, classes=names, temperature=warm)
        self.temperature_ = warm
        self.classes_ = classes
        self.n_features_in_ = graph.adjacency.num_cols if own else 1
        self.scores_ = solution.logits
        self.curve_ = solution.curve
        return self

    def predict(self, X: Any = None, features: AnyFeatures | None = None) -> np.ndarray:
        """The most probable class of each node."""
        best = self.predict_proba(X, features).argmax(1)
        return self.classes_[best]

    def predict_proba(
        self, X: Any = None, features: AnyFeatures | None = None
    ) -> np.ndarray:
        """The probability of each class, in the order of `classes_`."""
        if not self.__sklearn_is_fitted__():
            raise not_fitted(self)
        scores = self._scores(X, features).double()
        return (scores / self.temperature_).softmax(1).numpy()

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The grade by the metric; of nodes that count differently, if told."""
        probabilities = torch.from_numpy(self.predict_proba(X))
        labels = lookup_labels(y, self.classes_)
        weight = torch.ones(len(labels))
        if sample_weight is not None:
            weight = torch.from_numpy(np.array(sample_weight, np.float32))
        metric = lookup(METRICS, self.metric, "metric")
        return float(metric.score(probabilities, labels, weight))

    def save(self, path: str | Path) -> int:
        """Write what was learned to a new file; returns its size in bytes."""
        if not self.__sklearn_is_fitted__():
            raise not_fitted(self)
        check_trainable(self._method())
        assert isinstance(self.model_, Model)
        return self.model_.save(path)

    @classmethod
    def load(
        cls: type[Classifier], path: str | Path, *, device: str = "cpu"
    ) -> Classifier:
        """A fitted classifier from such a file; it predicts rows."""
        model = load_model(path, device=device)
        loaded = cls(model.method, device=device)
        loaded.model_, loaded.scores_, loaded.curve_ = model, None, None
        loaded.classes_ = np.array(model.classes)
        loaded.temperature_ = model.temperature
        loaded.n_features_in_ = model.graph_info.num_known
        return loaded

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_")

    def __sklearn_tags__(self) -> Any:
        return classifier_tags()

    def _method(self) -> Method:
        if isinstance(self.method, Method):
            return self.method
        return lookup(METHODS, self.method, "method")()

    def _deep(self) -> dict[str, Any]:
        # A parameter may be wrong until `fit` says so.
        wrong = isinstance(self.method, str) and self.method not in METHODS
        if wrong or not isinstance(self.method, str | Method):
            return {}
        options = options_of(self._method())
        return {f"method{NESTED}{name}": value for name, value in options.items()}

    def _set_deep(self, wanted: dict[str, Any]) -> None:
        if wanted:
            options = {n.removeprefix(f"method{NESTED}"): v for n, v in wanted.items()}
            method = self._method()
            self.method = with_options(method, options, name_of(method))

    def _targets(
        self, X: Any, y: Any, graph: Graph
    ) -> tuple[Int[Tensor, " nodes"], np.ndarray]:
        if y is None and (graph.labels < 0).all():
            raise InputError(
                "NodeClassifier requires y to be passed, but the target y is None."
            )
        if y is None:
            return encode_labels(graph.labels.numpy())
        labels, classes = encode_labels(y)
        if self.graph is None:
            ids = torch.arange(graph.num_nodes)
        else:
            ids = as_ids(X, graph.num_nodes)
        if len(labels) != len(ids):
            raise InputError(f"There are {len(labels)} labels for {len(ids)} nodes.")
        everybody = torch.full((graph.num_nodes,), -1)
        everybody[ids] = labels
        return everybody, classes

    def _task(self, graph: Graph, classes: np.ndarray) -> Task:
        if isinstance(self.validation, float | int):
            train, valid = stratified_holdout(graph.labels, self.validation, self.seed)
        else:
            valid = as_ids(self.validation, graph.num_nodes)
            train, valid = given_holdout(graph.labels, valid)
        weights = class_weights(self.class_weight, classes, graph.labels[train])
        metric = lookup(METRICS, self.metric, "metric")
        if metric.max_classes is not None and len(classes) > metric.max_classes:
            raise InputError(
                f"{metric.name} grades {metric.max_classes} classes; "
                f"there are {len(classes)}."
            )
        return Task(
            graph,
            train,
            valid,
            metric,
            self.seed,
            class_weights=weights,
            patience=self.patience,
        )

    def _scores(
        self, X: Any, features: AnyFeatures | None
    ) -> Float[Tensor, "nodes classes"]:
        if X is None or self.graph is not None:
            return self._fitted_scores(X)
        if self.model_ is None:
            raise InputError(
                f"{name_of(self._method())} answers for the nodes that it was fitted "
                "on alone: call predict() without rows."
            )
        graph = as_graph(X, features)
        if not self.model_.network.row_wise:
            return self.model_.scores(graph)
        width = graph.adjacency.num_cols
        if width != self.n_features_in_:
            raise InputError(
                f"X has {width} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input, a column for each node."
            )
        if graph.num_nodes == width:
            return self.model_.scores(graph)
        new, _ = self.model_.new_nodes(graph.adjacency, graph.features)
        return self.model_.score_rows(new)

    def _fitted_scores(self, X: Any) -> Float[Tensor, "nodes classes"]:
        if self.scores_ is None:
            raise InputError("A loaded classifier knows no nodes; pass it rows.")
        return self.scores_ if X is None else self.scores_[as_ids(X, len(self.scores_))]
