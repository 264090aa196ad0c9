"""Methods: the table of all of them, in the order of the paper's tables."""

from unalike.methods.link import LINK
from unalike.methods.link_concat import LINKConcat
from unalike.methods.linkx import LINKX
from unalike.methods.method import Method
from unalike.methods.mlp import MLP

METHODS: dict[str, type[Method]] = {
    "mlp": MLP,
    "link": LINK,
    "link-concat": LINKConcat,
    "linkx": LINKX,
}


def name_of(method: Method) -> str:
    """The name of a method in the table, or of its class where it is not there."""
    names = {kind: name for name, kind in METHODS.items()}
    return names.get(type(method), type(method).__name__)
