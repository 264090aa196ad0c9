"""Choose the device, peak memory, versions, git commit."""

from __future__ import annotations

import platform
import resource
import subprocess
from functools import cache
from math import ceil
from pathlib import Path

import torch

from unalike.errors import lookup
from unalike.version import __version__

TORCH_MEMORY_SHARE = 0.95
"""Share of a card's memory for what torch counts; programs take some besides."""


def best_device() -> str:
    """A GPU where there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def choose_device(told: str) -> str:
    """The device that is meant, out of those that are there.

    One card of several becomes that for which programs are loaded.
    """
    cards = ["cuda", *(f"cuda:{card}" for card in range(torch.cuda.device_count()))]
    there = ["cpu", *(cards if torch.cuda.is_available() else [])]
    known = {"auto": best_device(), **{name: name for name in there}}
    found = lookup(known, told, "device")
    if found in cards[1:]:
        torch.cuda.set_device(found)
    return found


def device_of_worker(device: str, job: int, jobs: int) -> str:
    """The device of one of some processes, and its part of a card's memory.

    `cuda` stands for all cards, one after the other.
    """
    if torch.device(device).type != "cuda":
        return device
    cards = torch.cuda.device_count() if device == "cuda" else 1
    own = f"cuda:{job % cards}" if device == "cuda" else device
    torch.cuda.set_device(own)
    torch.cuda.set_per_process_memory_fraction(
        TORCH_MEMORY_SHARE / ceil(jobs / cards), own
    )
    return own


def device_name(device: str) -> str:
    """The device in words."""
    if torch.device(device).type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()} cpu, {torch.get_num_threads()} threads"


def cpu_capability() -> str:
    """The instructions that torch uses, on which the last bits of sums depend."""
    return torch.backends.cpu.get_cpu_capability()


def peak_memory_mb(device: str) -> float:
    """The most memory this process has held, on the device it computes on."""
    if torch.device(device).type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def reset_peak_memory(device: str) -> None:
    """Let go of memory that is kept for later, and of the highest use so far."""
    if torch.device(device).type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def versions() -> dict[str, str]:
    """The versions that a result may depend on."""
    return {
        "unalike": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


@cache
def commit() -> str:
    """The commit of the source tree this runs from; empty for an installed package.

    Where files differ from those of the commit, it says so.
    """
    root = Path(__file__).parents[3]
    if not (root / ".git").exists():
        return ""
    form = ["--always", "--exclude=*", "--abbrev=40", "--dirty=+changes"]
    asked = ["git", "-C", str(root), "describe", *form]
    try:
        found = subprocess.run(asked, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return found.stdout.strip()
