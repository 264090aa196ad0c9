"""SGC: logistic regression on features that were propagated a few times."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.data.graph import Graph
from unalike.methods.base import MessagePassingMethod
from unalike.nn.module import (
    MessagePassingModule,
    SparseInputModule,
    SparseProducts,
    SparseWeightSpec,
)
from unalike.nn.normalized_adjacency import GCNNorm


@dataclass(frozen=True, kw_only=True)
class SGC(MessagePassingMethod):
    """Â^hops (X W + b): the linear map comes first, so that few columns propagate."""

    paper = "Wu et al. 2019, https://arxiv.org/abs/1902.07153"

    hops: int = 1
    """Propagations; the paper tries 1 and 2."""
    propagate_bias: bool = True
    """Propagate b too, as the paper's program does; Wu et al. add it afterwards."""

    def network(self, graph: Graph) -> SparseInputModule:
        return SGCModule(self, graph)


class SGCModule(MessagePassingModule):
    late: nn.Parameter | None

    def __init__(self, of: SGC, graph: Graph) -> None:
        features, classes = graph.num_features, graph.num_classes
        super().__init__(
            graph, SparseWeightSpec(features, classes, offset=of.propagate_bias)
        )
        late = None if of.propagate_bias else nn.Parameter(torch.zeros(classes))
        self.register_parameter("late", late)
        self.hops = of.hops

    def forward(
        self, batch: Graph, first: SparseProducts
    ) -> Float[Tensor, "nodes classes"]:
        adjacency = GCNNorm.of(batch.adjacency)
        flown = adjacency.power(self.hops, self.enter(batch, first))
        return flown if self.late is None else flown + self.late
