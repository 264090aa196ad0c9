"""SGC: logistic regression on propagated features."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.data.graph import Graph
from unalike.methods.base import MessagePassingMethod
from unalike.nn.normalized_adjacency import GCNNorm
from unalike.nn.sparse_linear import InputLinear


@dataclass(frozen=True, kw_only=True)
class SGC(MessagePassingMethod):
    """Â^hops (X W + b); the linear layer comes first, so that few columns propagate."""

    paper = "Wu et al. 2019, https://arxiv.org/abs/1902.07153"
    suits = "neighbours agree and one linear layer is enough"

    hops: int = 1
    """Propagation steps; the paper tries 1 and 2."""
    propagate_bias: bool = True
    """Propagate b too, as the paper's code does; Wu et al. add it afterwards."""

    def build_module(self, graph: Graph) -> nn.Module:
        return SGCModule(self, graph)


class SGCModule(nn.Module):
    """Â^hops (X W + b), or Â^hops (X W) + b."""

    bias: nn.Parameter | None

    def __init__(self, o: SGC, graph: Graph) -> None:
        super().__init__()
        classes = graph.num_classes
        self.linear = InputLinear("features", graph, classes, bias=o.propagate_bias)
        bias = None if o.propagate_bias else nn.Parameter(torch.zeros(classes))
        self.register_parameter("bias", bias)
        self.hops = o.hops

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        a_hat = GCNNorm.of(batch.adjacency)
        x = a_hat.power(self.hops, self.linear(batch.features))
        return x if self.bias is None else x + self.bias
