"""Small graphs and untrained modules of message-passing methods."""

import scipy.sparse
import torch

from unalike import METHODS, Adjacency, Graph
from unalike.nn.sparse_linear import DenseLinear, SparseLinear

NODES, FEATURES, CLASSES = 23, 6, 3


def make_graph(*, directed, weighted=False, sparse=False):
    """Some nodes have a self-loop; the last two have only that, or no edge."""
    torch.manual_seed(5)
    source, target = torch.randint(NODES - 2, (2, 60))
    loops = torch.tensor([0, 3, 7, NODES - 2])
    source, target = torch.cat([source, loops]), torch.cat([target, loops])
    rows = Adjacency.from_edges(
        source,
        target,
        shape=(NODES, NODES),
        values=torch.rand(len(source)) + 0.5 if weighted else None,
    )
    features = torch.randn(NODES, FEATURES)
    if sparse:
        features = features * (torch.rand_like(features) < 0.4)
        features = Adjacency.from_scipy(scipy.sparse.csr_array(features.numpy()))
    return Graph.build(
        rows if directed else rows.to_undirected(),
        features=features,
        labels=torch.randint(CLASSES, (NODES,)),
        num_classes=CLASSES,
        directed=directed,
    )


def network_of(name, graph, **options):
    """An untrained module in evaluation mode."""
    torch.manual_seed(1)
    method = METHODS[name](**options)
    return method.network(method.prepare(graph)).eval()


def scatter(network):
    """Perturb every parameter, so that no initial value hides a mistake."""
    with torch.no_grad():
        for parameter in network.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
        for name, buffer in network.named_buffers():
            if name.endswith("running_mean"):
                buffer.copy_(torch.randn_like(buffer))
            if name.endswith("running_var"):
                buffer.copy_(torch.rand_like(buffer) + 0.5)
    return network


def entry_of(network):
    """The weight and the bias of the layer that reads the features."""
    for layer in network.modules():
        if isinstance(layer, DenseLinear) or (
            isinstance(layer, SparseLinear) and layer.source == "features"
        ):
            return layer.weight, layer.bias
    raise AssertionError(network)
