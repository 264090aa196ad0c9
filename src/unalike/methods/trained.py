"""Methods that are trained: the table of all of them."""

from unalike.methods.appnp import APPNP
from unalike.methods.gat import GAT
from unalike.methods.gat_jk import GATJK
from unalike.methods.gcn import GCN
from unalike.methods.gcn_jk import GCNJK
from unalike.methods.gcnii import GCNII
from unalike.methods.gpr_gnn import GPRGNN
from unalike.methods.h2gcn import H2GCN
from unalike.methods.link import LINK
from unalike.methods.link_concat import LINKConcat
from unalike.methods.linkx import LINKX
from unalike.methods.method import Trained
from unalike.methods.mixhop import MixHop
from unalike.methods.mlp import MLP
from unalike.methods.sgc import SGC

TRAINED: dict[str, type[Trained]] = {
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
