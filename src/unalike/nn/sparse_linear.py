"""First linear layers: SparseLinear for sparse inputs, DenseLinear, InputLinear."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, Unpack

from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call

from unalike.data.adjacency import Adjacency
from unalike.data.graph import Graph
from unalike.nn.init import LinearOptions, linear_parameters
from unalike.nn.linear import DeferredLinear, Dropout

Source = Literal["adjacency", "features", "outgoing", "incoming"]
"""The sparse input of a batch, by the name of its attribute."""
Products: TypeAlias = dict[str, Float[Tensor, "nodes *runs hidden"]]
"""Outputs of `SparseLinear` layers by the name of the layer."""


class SparseLinear(nn.Module):
    """x W + b for a sparse input of the batch.

    Alone it is an ordinary layer. The training loop computes the product of all runs
    at once, uses it for the step and the evaluation, and passes it in as the buffer
    `product`; AdamW then updates the weight inside the backward product.
    """

    weight: nn.Parameter
    bias: nn.Parameter | None
    product: Float[Tensor, "nodes hidden"] | None

    def __init__(
        self,
        source: Source,
        in_features: int,
        out_features: int,
        *,
        local_rows: range | None = None,
        **options: Unpack[LinearOptions],
    ) -> None:
        super().__init__()
        self.source: Source = source
        self.in_features, self.out_features = in_features, out_features
        self.weight, bias = linear_parameters(
            in_features, out_features, local_rows=local_rows, **options
        )
        self.register_parameter("bias", bias)
        self.register_buffer("product", None, persistent=False)

    def forward(self, x: Adjacency) -> Float[Tensor, "nodes hidden"]:
        if self.product is not None:
            return self.product
        product = x @ self.weight
        return product if self.bias is None else product + self.bias

    def defer(self, x: Any) -> DeferredLinear:
        """The product as that of a layer without weight."""
        return DeferredLinear(self.forward(x))

    def extra_repr(self) -> str:
        return f"{self.source!r}, {self.in_features}, {self.out_features}"


def sparse_layers(module: nn.Module) -> dict[str, SparseLinear]:
    """The `SparseLinear` layers of a module by name."""
    return {
        name: layer
        for name, layer in module.named_modules()
        if isinstance(layer, SparseLinear)
    }


def sparse_products(module: nn.Module, batch: Graph) -> Products:
    """The output of every `SparseLinear` layer of a module."""
    return {
        name: layer(getattr(batch, layer.source))
        for name, layer in sparse_layers(module).items()
    }


def as_buffers(products: Products) -> dict[str, Tensor]:
    """Products by the name of the buffer through which a layer gets them."""
    return {f"{name}.product": product for name, product in products.items()}


def forward_with(
    module: nn.Module, batch: Graph, products: Products
) -> Float[Tensor, "nodes classes"]:
    """The logits of a batch from products that are computed already."""
    logits: Tensor = functional_call(module, as_buffers(products), (batch,))
    return logits


class DenseLinear(nn.Module):
    """x W + b with a weight of shape [in, out], sampled like that of `SparseLinear`."""

    bias: nn.Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        dropout: float | None = None,
        **options: Unpack[LinearOptions],
    ) -> None:
        super().__init__()
        self.weight, bias = linear_parameters(in_features, out_features, **options)
        self.register_parameter("bias", bias)
        self.dropout = None if dropout is None else Dropout(dropout)

    def forward(self, x: Any) -> Float[Tensor, "nodes hidden"]:
        return self.defer(x).materialize()

    def defer(self, x: Any) -> DeferredLinear:
        """The layer's factors without their product."""
        rows = x.to_dense().to(self.weight.dtype)
        if self.dropout is None:
            return DeferredLinear(rows, self.weight, self.bias, constant=x)
        return DeferredLinear(self.dropout(rows), self.weight, self.bias)


def InputLinear(
    source: Source,
    graph: Graph,
    out_features: int,
    *,
    dropout: float | None = None,
    **options: Unpack[LinearOptions],
) -> SparseLinear | DenseLinear:
    """The first linear layer: `SparseLinear` for sparse input, `DenseLinear` for dense.

    Only dense features get dropout: the training loop computes the product of sparse
    ones.
    """
    x = getattr(graph, source)
    if not isinstance(x, Adjacency):
        return DenseLinear(x.shape[1], out_features, dropout=dropout, **options)
    rows = x.local_cols if source == "adjacency" else None
    columns = x.num_cols_global
    return SparseLinear(source, columns, out_features, local_rows=rows, **options)


def in_draw_order(graph: Graph) -> tuple[Source, Source]:
    """Adjacency and features in the order in which their weights are sampled.

    Those of dense features come first. Another order would give other weights for the
    same seed.
    """
    if isinstance(graph.features, Adjacency):
        return "adjacency", "features"
    return "features", "adjacency"
