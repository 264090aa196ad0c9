"""Methods: the table of all of them, in the order of the paper's tables."""

from unalike.methods.correct_and_smooth import CorrectAndSmooth
from unalike.methods.label_propagation import LabelPropagation
from unalike.methods.method import Method
from unalike.methods.mlp import MLP
from unalike.methods.trained import TRAINED, load_entry_points

METHODS: dict[str, type[Method]] = {
    "mlp": MLP,
    "label-propagation": LabelPropagation,
    "correct-and-smooth": CorrectAndSmooth,
    **TRAINED,
}


def name_of(method: Method) -> str:
    """The name of a method in the table, or of its class where it is not there."""
    names = {kind: name for name, kind in METHODS.items()}
    return names.get(type(method), type(method).__name__)


load_entry_points()
