"""A model of views: stored scores of known nodes, and scores of new ones by rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Features, Graph
from unalike.errors import UserError
from unalike.inference.model import Model, Scores
from unalike.methods.views import Views
from unalike.views.fitted import FittedViews


@dataclass(frozen=True, eq=False, kw_only=True)
class ViewsModel(Model):
    """A trained model of views. It is always on the CPU."""

    @cached_property
    def scorer(self) -> FittedViews:
        """The heads and bases, with the graph that views of new nodes are made of."""
        assert isinstance(self.method, Views)
        return self.method.fitted(self.weights)

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    @property
    def scores_rows(self) -> bool:
        return False

    @property
    def reads_edges(self) -> bool:
        return True

    def to(self, device: torch.device | str) -> Model:
        return self

    def scores(self, graph: Graph) -> Scores:
        """The scores of all nodes of the training graph, as training gave them."""
        self.graph_info.check(graph)
        if not same_features(graph.features, self.scorer.task.graph.features):
            raise UserError("The model was trained on this graph with other features.")
        return self.scorer.scores

    def score_rows(self, prepared: Graph) -> Scores:
        """The scores of new nodes by their prepared rows."""
        rows = self.scorer.rows(prepared)
        return self.scorer.score(self.scorer.table(rows), rows)

    def check_weights(self) -> None:
        fitted, info = self.scorer, self.graph_info
        graph = fitted.task.graph
        sizes = (graph.num_nodes, graph.num_features, graph.num_classes, graph.directed)
        if sizes != (
            info.num_known,
            info.num_features,
            info.num_classes,
            info.directed,
        ):
            raise ValueError("its graph differs from the description")


def same_features(first: Features, second: Features) -> bool:
    """Whether two matrices have the same layout and entries."""
    arrays, others = (
        [one for one in (x.indptr, x.indices, x.values) if one is not None]
        if isinstance(x, Adjacency)
        else [x.float()]
        for x in (first, second)
    )
    same_layout = first.shape == second.shape and len(arrays) == len(others)
    return same_layout and all(map(torch.equal, arrays, others))
