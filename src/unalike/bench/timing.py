"""Median time with warm-up and synchronization, peak memory and bandwidth."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from unalike.device import peak_memory_mb

WARM_UP = 4
"""Calls that are not timed: compilation, CUDA graph capture, caches."""


def median_seconds(
    function: Callable[[], object], device: torch.device, repeats: int
) -> float:
    """The median time of a function after warm-up."""
    for _ in range(WARM_UP):
        function()
    return interleaved_medians([function], device, repeats)[0]


def interleaved_medians(
    functions: Sequence[Callable[[], object]], device: torch.device, repeats: int
) -> list[float]:
    """Median times of warm functions, called in turn so that all meet the same load."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(repeats):
        for function, spent in zip(functions, times, strict=True):
            synchronize(device)
            start = time.perf_counter()
            function()
            synchronize(device)
            spent.append(time.perf_counter() - start)
    return [statistics.median(spent) for spent in times]


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


def allocation_peak(function: Callable[[], object]) -> int:
    """The largest sum of bytes that a call holds of torch's memory on a CPU."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        function()
    held = peak = 0
    for event in profiler.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            peak = max(peak, held)
    return peak


def bandwidth(device: torch.device) -> float:
    """Bytes per second that a large copy reads and writes."""
    size = 2**30 if device.type == "cuda" else 2**26
    source = torch.empty(size, device=device).uniform_()
    target = torch.empty_like(source)
    return 8 * size / median_seconds(lambda: target.copy_(source), device, 10)


def measured_peers(
    row: dict[str, Any], rows: Sequence[dict[str, Any]], key: str, same: Sequence[str]
) -> list[dict[str, Any]]:
    """Measured rows of other libraries for the case of a row that is measured too."""
    return [
        other
        for other in rows
        if row[key] is not None
        and other[key] is not None
        and not other["ours"]
        and all(other[name] == row[name] for name in same)
    ]
