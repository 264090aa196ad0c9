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
