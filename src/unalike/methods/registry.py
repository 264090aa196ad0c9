"""Table of trained methods, `register`. Apart from `__init__` because Correct & Smooth needs it (circle)."""

from __future__ import annotations

from unalike.methods.appnp import APPNP
from unalike.methods.base import TrainedMethod
from unalike.methods.gat import GAT, GATJK
from unalike.methods.gcn import GCN, GCNJK
from unalike.methods.gcnii import GCNII
from unalike.methods.gpr_gnn import GPRGNN
from unalike.methods.h2gcn import H2GCN
from unalike.methods.link import LINK
from unalike.methods.link_concat import LINKConcat
from unalike.methods.linkx import LINKX
from unalike.methods.mixhop import MixHop
from unalike.methods.mlp import MLP
from unalike.methods.sgc import SGC

TRAINED_METHODS: dict[str, type[TrainedMethod]] = {
    "mlp": MLP,
    "link": LINK,
    "sgc": SGC,
    "gcn": GCN,
    "gat": GAT,
    "gcn-jk": GCNJK,
    "gat-jk": GATJK,
    "appnp": APPNP,
    "h2gcn": H2GCN,
    "mixhop": MixHop,
    "gpr-gnn": GPRGNN,
    "gcnii": GCNII,
    "link-concat": LINKConcat,
    "linkx": LINKX,
}
