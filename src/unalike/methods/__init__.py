"""Methods: the table of all of them by name."""

from __future__ import annotations

from unalike.data.graph import Graph
from unalike.data.regression import check_has_classes
from unalike.errors import UserError, lookup
from unalike.methods.base import Method, TrainedMethod
from unalike.methods.correct_and_smooth import CorrectAndSmooth
from unalike.methods.label_propagation import LabelPropagation
from unalike.methods.mlp import MLP
from unalike.methods.registry import TRAINED_METHODS, load_entry_points
from unalike.methods.views import Views, ViewsTrees

METHODS: dict[str, type[Method]] = {
    "mlp": MLP,
    "label-propagation": LabelPropagation,
    "correct-and-smooth": CorrectAndSmooth,
    **TRAINED_METHODS,
    "views": Views,
    "views-trees": ViewsTrees,
}


def as_method(method: Method | type[Method] | str) -> Method:
    """A method as it is, or that of a class or name with its default options."""
    if isinstance(method, str):
        method = lookup(METHODS, method, "method")
    return method if isinstance(method, Method) else method()


def check_uses_class_weights(method: Method) -> None:
    """Raise a `UserError` if a method would ignore class weights."""
    if not method.uses_class_weights:
        names = [name for name, kind in METHODS.items() if kind.uses_class_weights]
        raise UserError(
            f"{name_of(method)} has no class weights; methods that have them are "
            f"{', '.join(names)}."
        )


def check_uses_edge_weights(method: Method, graph: Graph) -> None:
    """Raise a `UserError` if a method would ignore the edge weights of a graph."""
    if graph.adjacency.values is None or method.uses_edge_weights:
        return
    names = [name for name, kind in METHODS.items() if kind().uses_edge_weights]
    raise UserError(
        f"{name_of(method)} ignores edge weights, and this graph has them; methods "
        f"that use them are {', '.join(names)}. Import the graph without --weight for "
        "others."
    )


def check_predicts_numbers(method: Method, graph: Graph) -> None:
    """Raise a `UserError` if a method needs classes and the labels are numbers."""
    if not isinstance(method, TrainedMethod):
        check_has_classes(graph, name_of(method))


def name_of(method: Method) -> str:
    """The name of a method in `METHODS`, or of its class if it is not registered."""
    names = {kind: name for name, kind in METHODS.items()}
    return names.get(type(method), type(method).__name__)


load_entry_points()
