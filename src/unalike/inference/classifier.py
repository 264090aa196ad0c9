"""NodeClassifier, the scikit-learn estimator."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from unalike.data.graph import Graph
from unalike.data.metrics import METRICS
from unalike.data.regression import check_has_classes
from unalike.data.task import Curve, Task
from unalike.errors import InputError, UserError, lookup
from unalike.importing.api import read_graph
from unalike.importing.options import ImportOptions
from unalike.importing.readers import TableInput
from unalike.inference.input_validation import (
    ClassWeight,
    as_graph,
    as_ids,
    as_stored,
    class_weights,
    encode_labels,
    lookup_labels,
    train_valid_ids,
)
from unalike.inference.model import (
    Model,
    SavedMethod,
    check_trainable,
    fit_model,
    to_probabilities,
)
from unalike.inference.model_file import load_model
from unalike.inference.new_nodes import AnyFeatures, adjacency_hash
from unalike.methods import (
    METHODS,
    as_method,
    check_uses_class_weights,
    check_uses_edge_weights,
    name_of,
)
from unalike.methods.base import Method
from unalike.options import options_of, with_options

Classifier = TypeVar("Classifier", bound="NodeClassifier")
METHOD_PREFIX = "method__"


class NodeClassifier(ClassifierMixin, BaseEstimator):
    """Fit a method on the nodes of a graph, and predict classes of nodes.

    Without `graph=`, X is the graph: `fit(adjacency, labels, features)` trains on its
    labelled nodes, `predict()` predicts all of them, and `predict(rows, features)`
    predicts new nodes, a row each. With `graph=`, X holds node ids, so that nodes are
    the samples of `cross_val_score` or `GridSearchCV`. With `fit(X, y,
    adjacency=A)`, X are the features of the nodes, so that the scaler of a pipeline
    reaches them. A stored graph keeps its ids, class names and columns in the model.
    Options of the method are parameters such as `method__hidden`.
    """

    classes_: np.ndarray
    n_features_in_: int
    temperature_: float
    adjacency_: Any
    """The adjacency that was given to `fit`, where X are the features."""
    scores_: Float[Tensor, "nodes classes"] | None
    curve_: Curve | None
    model_: Model | None
    """None for methods that train no weights, such as label propagation."""

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
        unlabelled: Any = -1,
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
        self.unlabelled = unlabelled

    def fit(
        self: Classifier,
        X: Any,
        y: Any = None,
        features: AnyFeatures | None = None,
        *,
        adjacency: Any = None,
        nodes: TableInput | None = None,
        options: ImportOptions | None = None,
    ) -> Classifier:
        """Train on the labelled nodes; None, NaN and `unlabelled` are missing labels.

        X is the graph, or the features of its nodes if `adjacency` is given. With
        `nodes`, X and `nodes` are tables of edges and nodes, as frames or paths, which
        are read as `import_graph` does, with its `options`: `label` names the column
        of labels.
        `validation` is a fraction of each class or the ids of nodes. The weights of
        the epoch with the best validation score are used, and training stops early
        after `patience` epochs without a better one. `calibrate` scales probabilities
        by the temperature that fits the validation nodes.
        """
        self.adjacency_ = adjacency
        source, features = self._source(X, y, features, nodes, options)
        stored = as_stored(source)
        graph = as_graph(source if stored is None else stored.graph, features)
        if y is None:
            check_has_classes(graph, "NodeClassifier without y")
        labels, classes = self._targets(X, y, graph)
        graph = replace(
            graph,
            labels=labels,
            num_classes=len(classes),
            class_names=None,
            label_values=None,
        )
        method, task = as_method(self.method), self._task(graph, classes)
        check_uses_edge_weights(method, graph)
        if task.class_weights is not None:
            check_uses_class_weights(method)
        model: Model | None = None
        if isinstance(method, SavedMethod):
            model, solution = fit_model(method, task, device=self.device, stored=stored)
        else:
            solution = method.solve(task, device=self.device)
        temperature = 1.0
        if self.calibrate:
            temperature = solution.temperature(task.valid, labels)
        self.model_ = model and replace(
            model, classes=classes.tolist(), temperature=temperature
        )
        self.temperature_ = temperature
        self.classes_ = classes
        self.n_features_in_ = graph.adjacency.num_cols if self.graph is None else 1
        if adjacency is not None:
            self.n_features_in_ = graph.num_features
        self.scores_ = solution.logits
        self.curve_ = solution.curve
        return self

    def predict(
        self,
        X: Any = None,
        features: AnyFeatures | None = None,
        *,
        nodes: TableInput | None = None,
    ) -> np.ndarray:
        """The most probable class of each node.

        With `nodes`, X and `nodes` are tables of the edges and of the new nodes, in
        whose order the classes are.
        """
        best = self.predict_proba(X, features, nodes=nodes).argmax(1)
        return self.classes_[best]

    def predict_proba(
        self,
        X: Any = None,
        features: AnyFeatures | None = None,
        *,
        nodes: TableInput | None = None,
    ) -> np.ndarray:
        """The probability of each class, in the order of `classes_`."""
        check_is_fitted(self)
        if nodes is not None:
            if self.model_ is None:
                raise self._knows_fitted_nodes_only()
            table = self.model_.predict_tables(() if X is None else X, nodes)
            columns = [table[f"p_{name}"] for name in self.model_.classes]
            return np.stack([column.to_numpy() for column in columns], 1)
        logits = self._logits(X, features)
        return to_probabilities(logits, self.temperature_).numpy()

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        features: AnyFeatures | None = None,
    ) -> float:
        """The value of the metric, with optional weights of nodes."""
        probabilities = torch.from_numpy(self.predict_proba(X, features))
        labels = lookup_labels(y, self.classes_)
        weight = torch.ones(len(labels))
        if sample_weight is not None:
            weight = torch.from_numpy(np.array(sample_weight, np.float32))
        metric = lookup(METRICS, self.metric, "metric")
        return float(metric.score(probabilities, labels, weight))

    def save(self, path: str | Path) -> int:
        """Write the trained model to a new file; returns its size in bytes."""
        check_is_fitted(self)
        check_trainable(as_method(self.method))
        assert isinstance(self.model_, Model)
        return self.model_.save(path)

    @classmethod
    def load(
        cls: type[Classifier], path: str | Path, *, device: str = "cpu"
    ) -> Classifier:
        """A fitted classifier from a model file; it predicts rows."""
        model = load_model(path, device=device)
        classifier = cls(model.method, device=device)
        classifier.model_ = model
        classifier.scores_ = classifier.curve_ = classifier.adjacency_ = None
        classifier.classes_ = np.array(model.classes)
        classifier.temperature_ = model.temperature
        classifier.n_features_in_ = model.graph_info.num_known
        return classifier

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, and the options of the method such as `method__hidden`."""
        params: dict[str, Any] = super().get_params(deep=False)
        is_method = isinstance(self.method, Method) or self.method in METHODS
        if deep and is_method:
            options = options_of(as_method(self.method), omit=False)
            params |= {METHOD_PREFIX + name: value for name, value in options.items()}
        return params

    def set_params(self: Classifier, **params: Any) -> Classifier:
        """Set parameters, then options of the method such as `method__hidden`."""
        options = {
            name.removeprefix(METHOD_PREFIX): params.pop(name)
            for name in list(params)
            if name.startswith(METHOD_PREFIX)
        }
        super().set_params(**params)
        if options:
            method = as_method(self.method)
            try:
                self.method = with_options(method, options, name_of(method))
            except UserError as error:
                # scikit-learn expects a ValueError.
                raise InputError(str(error)) from None
        return self

    def __sklearn_clone__(self: Classifier) -> Classifier:
        # BaseEstimator would copy the graph.
        return type(self)(**self.get_params(deep=False))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _source(
        self,
        X: Any,
        y: Any,
        features: AnyFeatures | None,
        nodes: TableInput | None,
        options: ImportOptions | None,
    ) -> tuple[Any, AnyFeatures | None]:
        """The graph that the arguments of `fit` hold, and features that it lacks."""
        adjacency, graph = self.adjacency_, self.graph
        if nodes is not None:
            if any(given is not None for given in (y, features, adjacency, graph)):
                raise InputError(
                    "With a table of nodes, labels and features are its columns."
                )
            return read_graph(X, nodes, options=options), None
        if adjacency is not None:
            if graph is not None or features is not None:
                raise InputError("With an adjacency, X are the features of its nodes.")
            return adjacency, X
        return X if graph is None else graph, features

    def _targets(
        self, X: Any, y: Any, graph: Graph
    ) -> tuple[Int[Tensor, " nodes"], np.ndarray]:
        size = graph.num_nodes
        ids = torch.arange(size) if self.graph is None else as_ids(X, size)
        if y is None:
            known = graph.labels[ids].numpy()
            if (known < 0).all():
                raise InputError(
                    "NodeClassifier requires y to be passed, but the target y is None."
                )
            labels, classes = encode_labels(known)
            if graph.class_names is not None:
                classes = np.array(graph.class_names)[classes]
        else:
            labels, classes = encode_labels(y, self.unlabelled)
        if len(labels) != len(ids):
            raise InputError(f"There are {len(labels)} labels for {len(ids)} nodes.")
        all_labels = torch.full((size,), -1)
        all_labels[ids] = labels
        return all_labels, classes

    def _task(self, graph: Graph, classes: np.ndarray) -> Task:
        train, valid = train_valid_ids(graph.labels, self.validation, self.seed)
        weights = class_weights(self.class_weight, classes, graph.labels[train])
        metric = lookup(METRICS, self.metric, "metric")
        if metric.max_classes is not None and len(classes) > metric.max_classes:
            raise InputError(
                f"{metric.name} is for {metric.max_classes} classes; "
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

    def _knows_fitted_nodes_only(self) -> InputError:
        name = name_of(as_method(self.method))
        return InputError(
            f"{name} answers for the nodes that it was fitted on alone: call "
            "predict() without rows."
        )

    def _logits(
        self, X: Any, features: AnyFeatures | None
    ) -> Float[Tensor, "nodes classes"]:
        if X is None or self.graph is not None:
            if self.scores_ is None:
                raise InputError("A loaded classifier knows no nodes; pass it rows.")
            return (
                self.scores_
                if X is None
                else self.scores_[as_ids(X, len(self.scores_))]
            )
        rows = X
        if self.adjacency_ is not None:
            rows, features = self.adjacency_, X
        if self.model_ is None:
            raise self._knows_fitted_nodes_only()
        stored = as_stored(rows)
        graph = as_graph(rows if stored is None else stored.graph, features)
        if not self.model_.method.row_wise or self.adjacency_ is not None:
            return self.model_.scores(graph)
        num_cols = graph.adjacency.num_cols
        if num_cols != self.n_features_in_:
            raise InputError(
                f"X has {num_cols} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input, a column for each node."
            )
        if adjacency_hash(graph.adjacency) == self.model_.graph_info.fingerprint:
            return self.model_.scores(graph)
        rows, _ = self.model_.new_nodes(graph.adjacency, graph.features)
        return self.model_.score_rows(rows)
