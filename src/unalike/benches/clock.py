"""Clock: seconds and memory of repeated work on a device."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch


def seconds(work: Callable[[], object], device: torch.device, repeats: int) -> float:
    """The median time of some work after two rounds of warming up."""
    for _ in range(2):
        work()
    taken = []
    for _ in range(repeats):
        settle(device)
        began = time.perf_counter()
        work()
        settle(device)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def settle(device: torch.device) -> None:
    """Wait until the device has done what it was told."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def peak_gib(work: Callable[[], object], device: torch.device) -> float | None:
    """The most device memory that exists while the work runs; unknown on a CPU."""
    if device.type != "cuda":
        return None
    settle(device)
    torch.cuda.reset_peak_memory_stats(device)
    work()
    settle(device)
    return torch.cuda.max_memory_allocated(device) / 2**30


def bandwidth(device: torch.device) -> float:
    """Bytes a second that a large copy reads and writes."""
    size = 2**30 if device.type == "cuda" else 2**26
    source = torch.empty(size, device=device).uniform_()
    target = torch.empty_like(source)
    return 8 * size / seconds(lambda: target.copy_(source), device, 10)
