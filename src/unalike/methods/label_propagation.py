"""Label propagation: known labels flow along the edges; nothing is trained."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from unalike.methods.layers.normalised import Normalised
from unalike.methods.method import Method
from unalike.task import Solution, Task


@dataclass(frozen=True, kw_only=True)
class LabelPropagation(Method):
    """F = α Â^hops F + (1 − α) Y, many times, with Y the labels of the train nodes."""

    paper = (
        "Zhou et al. 2003, https://papers.nips.cc/paper/2506; "
        "two hops: Peel 2017, https://doi.org/10.1137/1.9781611974973.49"
    )

    alpha: float = 0.1
    """What neighbours count for; the paper tries .01, .1, .25, .5, .75, .9 and .99."""
    hops: int = 1
    """Propagations in each step; the paper tries 1 and 2."""
    steps: int = 50
    """Repetitions."""
    symmetrised: bool = True
    """Labels flow both ways along directed edges, as in the paper's program."""

    def solve(self, task: Task, *, device: torch.device | str = "cpu") -> Solution:
        graph = task.graph.symmetric() if self.symmetrised else task.graph
        adjacency = Normalised.of(graph.adjacency.to(device))
        known = known_labels(task).to(device)
        scores = known
        for _ in range(self.steps):
            flown = adjacency.power(self.hops, scores)
            scores = self.alpha * flown + (1 - self.alpha) * known
        return Solution(scores.cpu())


def known_labels(task: Task) -> Float[Tensor, "nodes classes"]:
    """A 1 at the class of each train node, 0 elsewhere."""
    known = torch.zeros(task.graph.num_nodes, task.graph.num_classes)
    labels = task.graph.labels[task.train]
    known[task.train] = F.one_hot(labels, task.graph.num_classes).float()
    return known
