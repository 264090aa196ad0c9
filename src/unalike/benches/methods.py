"""The methods bench: an epoch of message-passing methods, ours beside PyG's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from unalike.benches.bench import PRECISIONS, Bench, Contender
from unalike.benches.ours import MANY, ours_only_epoch
from unalike.benches.peers import theirs_epoch
from unalike.benches.rivals import RIVALS, Rival
from unalike.errors import lookup
from unalike.graph import Graph
from unalike.methods import METHODS
from unalike.methods.method import Trained
from unalike.split import Split
from unalike.training.settings import Training


@dataclass(frozen=True, kw_only=True)
class MethodsBench(Bench):
    """Every method that PyTorch Geometric has the layers for."""

    usual_hidden = 64
    usual_graph = "arxiv-year-twin"

    def contenders(self, graph: Graph, split: Split, hidden: int) -> list[Contender]:
        there = {name: rival for name, rival in RIVALS.items() if name in METHODS}
        found = []
        for name in self.only or there:
            rival = lookup(there, name, "timed method")
            method = self.method(name, rival, hidden)
            found += self._theirs(name, rival, method, graph, split, hidden)
            found += self._ours(name, method, graph, split, hidden)
        return found

    def method(self, name: str, rival: Rival, hidden: int) -> Trained:
        """A method with the options it is timed with."""
        options = rival.options(hidden)
        if self.layers is not None:
            options["layers"] = self.layers
        method = METHODS[name](**options)
        assert isinstance(method, Trained)
        return method

    def _theirs(
        self,
        name: str,
        rival: Rival,
        method: Trained,
        graph: Graph,
        split: Split,
        hidden: int,
    ) -> list[Contender]:
        return [
            Contender(
                name,
                hidden,
                what,
                partial(
                    theirs_epoch,
                    partial(rival.make, form, method),
                    graph,
                    split,
                    self.device,
                ),
                ours=False,
            )
            for what, form in rival.forms.items()
        ]

    def _ours(
        self, name: str, method: Trained, graph: Graph, split: Split, hidden: int
    ) -> list[Contender]:
        found = []
        for precision in PRECISIONS[self.device.type]:
            training = Training(precision=precision, epochs=MANY)
            make = partial(
                ours_only_epoch,
                graph,
                split,
                replace(method, training=training),
                device=self.device,
            )
            found.append(Contender(name, hidden, f"unalike {precision}", make, True))
        return found
