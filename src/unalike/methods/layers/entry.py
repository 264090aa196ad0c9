"""First linear layer of a method: of the adjacency or of dense or sparse features."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from unalike.adjacency import Adjacency
from unalike.graph import Graph
from unalike.methods.layers.affine import Affine, Hidden
from unalike.methods.layers.dropout import Dropout
from unalike.training.network import Init, linear_parameters
from unalike.training.sparse_linear import Source, SparseLinear


class DenseLinear(nn.Module):
    """x W + b with a weight of shape [in, out], drawn as that of a `SparseLinear`."""

    bias: nn.Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        bias: bool = True,
        init: Init = "linear",
        fan_in: int | None = None,
        dropout: float | None = None,
        defer: bool = False,
    ) -> None:
        super().__init__()
        self.weight, drawn_bias = linear_parameters(
            in_features, out_features, bias=bias, init=init, fan_in=fan_in
        )
        self.register_parameter("bias", drawn_bias)
        self.dropout = None if dropout is None else Dropout(dropout)
        self.deferred = defer

    def forward(self, x: Float[Tensor, "nodes inputs"]) -> Hidden:
        linear = self.defer(x)
        return linear if self.deferred else linear.value()

    def defer(self, x: Float[Tensor, "nodes inputs"]) -> Affine:
        """The layer's factors without their product."""
        rows = x.to_dense().to(self.weight.dtype)
        if self.dropout is None:
            return Affine(rows, self.weight, self.bias, constant=x)
        return Affine(self.dropout(rows), self.weight, self.bias)


class DeferredSparseLinear(SparseLinear):
    """A `SparseLinear` whose output a normalised adjacency takes for an input layer."""

    def forward(self, x: Adjacency) -> Affine:
        return Affine(super().forward(x))


def InputLinear(
    source: Source,
    graph: Graph,
    out_features: int,
    *,
    bias: bool = True,
    init: Init = "linear",
    fan_in: int | None = None,
    dropout: float | None = None,
    defer: bool = False,
) -> SparseLinear | DenseLinear:
    """The first linear layer: `SparseLinear` for sparse input, `DenseLinear` for dense.

    Only dense features can be dropped: the training loop computes the product of
    sparse ones. The output of a deferred layer is for a normalised adjacency.
    """
    x = getattr(graph, source)
    if not isinstance(x, Adjacency):
        return DenseLinear(
            x.shape[1],
            out_features,
            bias=bias,
            init=init,
            fan_in=fan_in,
            dropout=dropout,
            defer=defer,
        )
    kind = DeferredSparseLinear if defer else SparseLinear
    return kind(
        source,
        x.num_columns,
        out_features,
        bias=bias,
        init=init,
        fan_in=fan_in,
        local_rows=x.held if source == "adjacency" else None,
    )


def in_draw_order(graph: Graph) -> tuple[Source, Source]:
    """Adjacency and features in the order in which their weights are drawn.

    Those of dense features come first. Another order would give other weights for the
    same seed.
    """
    if isinstance(graph.features, Adjacency):
        return "adjacency", "features"
    return "features", "adjacency"
