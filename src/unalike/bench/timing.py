"""Median time with warm-up and synchronize, peak memory, bandwidth."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch

WARM_UP = 4
"""Rounds that are not timed: compiling, recording, filling caches."""


def median_seconds(
    work: Callable[[], object], device: torch.device, repeats: int
) -> float:
    """The median time of some work, once it has been done a few times."""
    for _ in range(WARM_UP):
        work()
    taken = []
    for _ in range(repeats):
        synchronize(device)
        began = time.perf_counter()
        work()
        synchronize(device)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def synchronize(device: torch.device) -> None:
    """Wait until the device has done what it was told."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def reset_peak_memory(device: torch.device) -> int:
    """Device memory in use now; the peak is counted anew from here."""
    if device.type != "cuda":
        return 0
    torch.cuda.reset_peak_memory_stats(device)
    return torch.cuda.memory_allocated(device)


def peak_gib(device: torch.device, before: int) -> float | None:
    """The most device memory held since then, over what was held; unknown on a CPU."""
    if device.type != "cuda":
        return None
    return (torch.cuda.max_memory_allocated(device) - before) / 2**30


def bandwidth(device: torch.device) -> float:
    """Bytes a second that a large copy reads and writes."""
    size = 2**30 if device.type == "cuda" else 2**26
    source = torch.empty(size, device=device).uniform_()
    target = torch.empty_like(source)
    return 8 * size / median_seconds(lambda: target.copy_(source), device, 10)
