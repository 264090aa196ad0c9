"""Median time with warm-up and synchronization, peak memory and bandwidth."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch

from unalike.device import peak_memory_mb

WARM_UP = 4
"""Calls that are not timed: compilation, CUDA graph capture, caches."""


def median_seconds(
    function: Callable[[], object], device: torch.device, repeats: int
) -> float:
    """The median time of a function after warm-up."""
    for _ in range(WARM_UP):
        function()
    times = []
    for _ in range(repeats):
        synchronize(device)
        start = time.perf_counter()
        function()
        synchronize(device)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def synchronize(device: torch.device) -> None:
    """Wait for all kernels of a CUDA device."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def allocated_bytes(device: torch.device) -> int:
    """Memory allocated on a CUDA device; 0 on a CPU."""
    return torch.cuda.memory_allocated(device) if device.type == "cuda" else 0


def peak_gib(device: torch.device, before: int) -> float | None:
    """Peak memory of a CUDA device minus the bytes before; None on a CPU."""
    if device.type != "cuda":
        return None
    return (peak_memory_mb(str(device)) * 2**20 - before) / 2**30


def bandwidth(device: torch.device) -> float:
    """Bytes per second that a large copy reads and writes."""
    size = 2**30 if device.type == "cuda" else 2**26
    source = torch.empty(size, device=device).uniform_()
    target = torch.empty_like(source)
    return 8 * size / median_seconds(lambda: target.copy_(source), device, 10)
