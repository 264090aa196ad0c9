"""CUDA graph capture: record a function once and replay it without launch overhead."""

from __future__ import annotations

from collections.abc import Callable

import torch

WARMUP_CALLS = 3
"""Calls that run eagerly, on a side stream, before the function is captured."""


class GraphedFunction:
    """A function of CUDA work that is captured after a few calls, then replayed.

    It must always use the same tensors and never wait for the GPU.
    """

    def __init__(self, function: Callable[[], None]) -> None:
        self.function = function
        self.graph: torch.cuda.CUDAGraph | None = None
        self.calls = 0

    def __call__(self) -> None:
        self.calls += 1
        if self.graph is not None:
            self.graph.replay()
            return
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self.function()
        torch.cuda.current_stream().wait_stream(side)
        if self.calls >= WARMUP_CALLS:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.function()
            self.graph = graph
