"""ACM-GCN: low-pass, high-pass and identity channels, mixed for each node."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Graph
from unalike.methods.base import (
    MessagePassingMethod,
    require_full_batch,
    with_dense_features,
)
from unalike.nn.init import uniform
from unalike.nn.linear import Dropout
from unalike.nn.normalized_adjacency import neighbour_mean
from unalike.nn.sparse_linear import InputLinear


@dataclass(frozen=True, kw_only=True)
class ACMGCN(MessagePassingMethod):
    """Σ α_c H_c of H_L = relu(P x W_L), H_H = relu((1 − P) x W_H), H_I = relu(x W_I).

    P = D^-1 (A + I), and α is a softmax for each node; two layers. ACM-GCN+ has
    `--mixing-norm` and may have `--structure`; ACM-GCN++ has `--residual` too.
    """

    paper = "Luan et al. 2022, https://arxiv.org/abs/2210.07606"
    suits = "some nodes resemble their neighbours and others differ from them"

    hidden: int = 64
    """Width of the hidden layer."""
    dropout: float = 0.5
    """Fraction of features and hidden units dropped in training."""
    relu_first: bool = False
    """P relu(x W) instead of relu(P x W), as in ACMII-GCN."""
    mixing_norm: bool = False
    """Layer norm of the channels where the weights α are computed."""
    structure: bool = False
    """A fourth channel relu(A W), with a weight for each node, as in LINK."""
    residual: bool = False
    """Add relu(x V) of the features to the input of the second layer."""
    drop_features: bool = True
    """Drop features too; sparse ones are made dense."""

    def prepare(self, graph: Graph) -> Graph:
        return with_dense_features(graph) if self.drop_features else graph

    def build_module(self, graph: Graph) -> nn.Module:
        if self.structure:
            require_full_batch(self)
        return ACMGCNModule(self, graph)


class ACMGCNModule(nn.Module):
    """Two layers of mixed channels, with ReLU and dropout between them."""

    def __init__(self, o: ACMGCN, graph: Graph) -> None:
        super().__init__()
        h, classes = o.hidden, graph.num_classes
        p = o.dropout if o.drop_features else None
        self.first = InputLinear(
            "features", graph, 3 * h, bias=False, fan_in=h, dropout=p
        )
        self.second = uniform(1 / math.sqrt(classes), h, 3 * classes)
        self.structure = nn.ModuleList(
            InputLinear("adjacency", graph, width, bias=False, fan_in=width)
            for width in [h, classes] * o.structure
        )
        self.skip = InputLinear("features", graph, h, dropout=p) if o.residual else None
        self.mixes = nn.ModuleList(ChannelMix(o, width) for width in (h, classes))
        self.dropout = Dropout(o.dropout)

    def forward(self, batch: Graph) -> Float[Tensor, "nodes classes"]:
        adjacency = batch.adjacency
        own = [torch.relu(linear(adjacency)) for linear in self.structure]
        x = self.mixes[0](adjacency, self.first(batch.features), own[:1])
        x = self.dropout(torch.relu(x))
        if self.skip is not None:
            x = x + self.dropout(torch.relu(self.skip(batch.features)))
        return self.mixes[1](adjacency, x @ self.second.to(x.dtype), own[1:])


class ChannelMix(nn.Module):
    """k Σ α_c H_c with α = softmax(σ(H w) W / k); k channels, factor 1 for four."""

    def __init__(self, o: ACMGCN, width: int) -> None:
        super().__init__()
        self.count = 4 if o.structure else 3
        self.scale = 1 if o.structure else self.count
        self.relu_first = o.relu_first
        self.vectors = uniform(1.0, self.count, width)
        self.mix = uniform(1 / math.sqrt(self.count), self.count, self.count)
        norm = nn.LayerNorm if o.mixing_norm else nn.Identity
        self.norms = nn.ModuleList(norm(width) for _ in range(self.count))

    def forward(
        self,
        adjacency: Adjacency,
        x: Float[Tensor, "nodes columns"],
        structure: list[Float[Tensor, "nodes width"]],
    ) -> Float[Tensor, "nodes width"]:
        channels = [*self.filter(adjacency, x), *structure]
        scores = [
            torch.sigmoid(norm(h) @ vector.to(h.dtype))
            for norm, h, vector in zip(self.norms, channels, self.vectors, strict=True)
        ]
        logits = torch.stack(scores, 1) @ self.mix.to(x.dtype) / self.count
        alpha = logits.softmax(1)
        terms = [alpha[:, c : c + 1] * h for c, h in enumerate(channels)]
        return self.scale * torch.stack(terms).sum(0)

    def filter(
        self, adjacency: Adjacency, x: Float[Tensor, "nodes columns"]
    ) -> list[Float[Tensor, "nodes width"]]:
        """The low-pass, the high-pass and the identity channel."""
        x = torch.relu(x) if self.relu_first else x
        low, high, own = x.chunk(3, 1)
        means = neighbour_mean(adjacency, torch.cat([low, high], 1), "all")
        mean_low, mean_high = means.chunk(2, 1)
        channels = [mean_low, high - mean_high, own]
        return channels if self.relu_first else [torch.relu(h) for h in channels]
