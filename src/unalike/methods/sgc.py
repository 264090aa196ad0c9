"""SGC: logistic regression on features that were propagated a few times."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.graph import Graph
from unalike.methods.layers.message_passing import MessagePassingNetwork
from unalike.methods.layers.normalised import Normalised
from unalike.methods.method import MessagePassing
from unalike.training.network import First, Network, Table


@dataclass(frozen=True, kw_only=True)
class SGC(MessagePassing):
    """Â^hops (X W + b): the linear map comes first, so that few columns propagate."""

    paper = "Wu et al. 2019, https://arxiv.org/abs/1902.07153"

    hops: int = 1
    """Propagations; the paper tries 1 and 2."""
    propagate_bias: bool = True
    """Propagate b too, as the paper's program does; Wu et al. add it afterwards."""

    def network(self, graph: Graph) -> Network:
        return _Network(self, graph)


class _Network(MessagePassingNetwork):
    late: nn.Parameter | None

    def __init__(self, of: SGC, graph: Graph) -> None:
        features, classes = graph.num_features, graph.num_classes
        super().__init__(graph, Table(features, classes, offset=of.propagate_bias))
        late = None if of.propagate_bias else nn.Parameter(torch.zeros(classes))
        self.register_parameter("late", late)
        self.hops = of.hops

    def forward(self, batch: Graph, first: First) -> Float[Tensor, "nodes classes"]:
        adjacency = Normalised.of(batch.adjacency)
        flown = adjacency.power(self.hops, self.enter(batch, first))
        return flown if self.late is None else flown + self.late
