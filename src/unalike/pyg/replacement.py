"""`accelerate`: replace the layers of PyTorch Geometric inside a model by ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.nn.parameter import UninitializedParameter

from unalike.display import Displayable, TextTable
from unalike.errors import InputError, UserError, require
from unalike.pyg.attention import GATConv, GATv2Conv
from unalike.pyg.gcn import APPNP, GCN2Conv, GCNConv, MixHopConv, SGConv
from unalike.pyg.linkx import LINKX
from unalike.pyg.sage_gin import GINConv, SAGEConv


@dataclass(frozen=True)
class Accelerated(Displayable):
    """Which layers of a model were replaced, and which were not and why."""

    replaced: dict[str, str]
    """The class of each layer that was replaced, by its name in the model."""
    kept: dict[str, str]
    """The reason for each layer that was not, by its name in the model."""

    def summary(self) -> TextTable:
        """A row for each layer of PyTorch Geometric."""
        rows = [(name, f"unalike.pyg.{kind}") for name, kind in self.replaced.items()]
        rows += [(name, f"not replaced: {why}") for name, why in self.kept.items()]
        return TextTable.from_rows("", ["layer", "now"], rows)


def accelerate(model: nn.Module) -> Accelerated:
    """Replace layers of PyTorch Geometric inside a model, in place.

    The new layers have the same `nn.Parameter` objects, so that an optimizer that was
    made before goes on to work. Subclasses of PyG's layers are not replaced.
    """
    pyg = require("torch_geometric.nn", "pyg", "accelerate needs PyTorch Geometric")
    table = {getattr(pyg, name): convert for name, convert in CONVERSIONS.items()}
    if type(model) in table:
        raise InputError(
            f"The model is itself a {type(model).__name__}; give the module that holds "
            "it, or construct the layer from unalike.pyg."
        )
    kinds = (pyg.MessagePassing, *table)
    report = Accelerated({}, {})
    _replace_children(model, "", kinds, table, report, {})
    return report


def _replace_children(
    module: nn.Module,
    prefix: str,
    kinds: tuple[type, ...],
    table: dict[type, Callable[[Any], nn.Module]],
    report: Accelerated,
    done: dict[nn.Module, nn.Module],
) -> None:
    """Replace the layers below a module; one that is used twice is replaced once."""
    for name, child in list(module._modules.items()):
        path = f"{prefix}{name}"
        if child is None:
            continue
        if isinstance(child, kinds):
            try:
                layer = done.get(child) or _convert(child, table)
            except UserError as error:
                report.kept[path] = str(error)
            else:
                setattr(module, name, layer)
                done[child] = layer
                report.replaced[path] = type(child).__name__
                continue
        _replace_children(child, f"{path}.", kinds, table, report, done)


def _convert(
    layer: nn.Module, table: dict[type, Callable[[Any], nn.Module]]
) -> nn.Module:
    """Our layer with the parameters and buffers of one of PyTorch Geometric."""
    kind = type(layer)
    if kind not in table:
        base = next((base.__name__ for base in kind.__mro__ if base in table), None)
        raise InputError(
            f"unalike has no {kind.__name__}."
            if base is None
            else f"{kind.__name__} is a subclass of {base}."
        )
    if any(isinstance(part, UninitializedParameter) for part in layer.parameters()):
        raise InputError("its parameters are not initialised; call the model first.")
    ours = table[kind](layer)
    kept = set(ours.modules())
    if any(_has_hooks(part) for part in layer.modules() if part not in kept):
        raise InputError("hooks are registered on it.")
    if _tensor_names(ours) != _tensor_names(layer):
        raise InputError(f"its parameters are not those of a {kind.__name__}.")
    _share(layer, ours)
    return ours.train(layer.training)


def _has_hooks(layer: Any) -> bool:
    hooks = [name for name in vars(layer) if name.endswith("_hooks")]
    # MessagePassing has lists of its own hooks beside those of nn.Module.
    ignored = ("state_dict", "load_state_dict")
    return any(
        getattr(layer, name)
        for name in hooks
        if not any(word in name for word in ignored)
    )


def _tensor_names(layer: nn.Module) -> set[str]:
    """The names of parameters and buffers."""
    named = (layer.named_parameters, layer.named_buffers)
    return {name for each in named for name, _ in each(remove_duplicate=False)}


def _share(layer: nn.Module, ours: nn.Module) -> None:
    """Give our layer the parameter and buffer objects of the other."""
    for path, parameter in layer.named_parameters(remove_duplicate=False):
        owner, _, name = path.rpartition(".")
        setattr(ours.get_submodule(owner), name, parameter)
    for path, buffer in layer.named_buffers(remove_duplicate=False):
        owner, _, name = path.rpartition(".")
        setattr(ours.get_submodule(owner), name, buffer)


def _message_passing_options(layer: Any) -> dict[str, Any]:
    """The arguments of MessagePassing that a layer has."""
    if layer.explain:
        raise InputError("it explains its messages.")
    return {
        "flow": layer.flow,
        "node_dim": layer.node_dim,
        "decomposed_layers": layer.decomposed_layers,
    }


def _read(layer: Any, *names: str) -> dict[str, Any]:
    """Constructor arguments that a layer stores under their own names."""
    stored = {name: getattr(layer, name) for name in names}
    if "in_channels" in stored:
        stored["in_channels"] = _in_channels(layer)
    return stored


def _in_channels(layer: Any) -> int | tuple[int, int]:
    """The input columns; a layer that was lazy has them in its linear layers only."""
    stored = layer.in_channels
    if isinstance(stored, int):
        return _input_columns(layer)
    names = ("lin_src", "lin_dst") if hasattr(layer, "lin_src") else ("lin_l", "lin_r")
    sources, targets = (getattr(layer, name, None) for name in names)
    assert sources is not None
    return sources.in_channels, stored[1] if targets is None else targets.in_channels


def _input_columns(module: nn.Module) -> int:
    """The input columns of the first linear layer."""
    from torch_geometric.nn import Linear

    linears = (part for part in module.modules() if isinstance(part, Linear))
    return next(linears).in_channels


def _from(kind: type[nn.Module], *names: str, aggr: bool = True) -> Any:
    """A conversion that reads the arguments and whether there is a bias."""

    def convert(layer: Any) -> nn.Module:
        options = _message_passing_options(layer)
        options |= {"aggr": layer.aggr} if aggr else {}
        if "bias" in names:
            options["bias"] = layer.bias is not None
        stored = [name for name in names if name != "bias"]
        return kind(**_read(layer, *stored), **options)

    return convert


ATTENTION = (
    "in_channels",
    "out_channels",
    "heads",
    "concat",
    "negative_slope",
    "dropout",
    "add_self_loops",
    "edge_dim",
    "residual",
    "bias",
)
NORMALISED = ("cached", "add_self_loops", "normalize")


def _sage(layer: Any) -> SAGEConv:
    names = ("in_channels", "out_channels", "aggr", "normalize", "root_weight")
    return SAGEConv(
        **_read(layer, *names, "project"),
        bias=layer.lin_l.bias is not None,
        **_message_passing_options(layer),
    )


def _gin(layer: Any) -> GINConv:
    options = _message_passing_options(layer) | {"aggr": layer.aggr}
    train_eps = isinstance(layer.eps, nn.Parameter)
    # Constructing a layer draws new values, which would change those of a shared nn.
    ours = GINConv(nn.Identity(), layer.initial_eps, train_eps, **options)
    ours.nn = layer.nn
    return ours


def _gcn2(layer: Any) -> GCN2Conv:
    options = _message_passing_options(layer) | {"aggr": layer.aggr}
    ours = GCN2Conv(
        **_read(layer, "channels", "alpha", *NORMALISED),
        shared_weights=layer.weight2 is None,
        **options,
    )
    ours.beta = layer.beta
    return ours


def _sg(layer: Any) -> SGConv:
    options = _message_passing_options(layer) | {"aggr": layer.aggr}
    names = ("in_channels", "out_channels", "K", "cached", "add_self_loops")
    return SGConv(**_read(layer, *names), bias=layer.lin.bias is not None, **options)


def _linkx(layer: Any) -> LINKX:
    return LINKX(
        **_read(layer, "num_nodes", "out_channels", "num_edge_layers"),
        in_channels=_input_columns(layer.node_mlp),
        hidden_channels=layer.edge_lin.out_channels,
        num_layers=len(layer.final_mlp.lins),
        num_node_layers=len(layer.node_mlp.lins),
        dropout=layer.final_mlp.dropout[0],
    )


CONVERSIONS: dict[str, Callable[[Any], nn.Module]] = {
    "APPNP": _from(APPNP, "K", "alpha", "dropout", *NORMALISED),
    "GATConv": _from(GATConv, *ATTENTION),
    "GATv2Conv": _from(GATv2Conv, *ATTENTION, "share_weights"),
    "GCN2Conv": _gcn2,
    "GCNConv": _from(
        GCNConv, "in_channels", "out_channels", "improved", "bias", *NORMALISED
    ),
    "GINConv": _gin,
    "LINKX": _linkx,
    "MixHopConv": _from(
        MixHopConv, "in_channels", "out_channels", "powers", "add_self_loops", "bias"
    ),
    "SAGEConv": _sage,
    "SGConv": _sg,
}
"""How our layer is made from the one of PyTorch Geometric with the same name."""
