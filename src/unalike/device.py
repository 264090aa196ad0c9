"""Choice of device, peak memory, versions of packages, git commit."""

from __future__ import annotations

import platform
import resource
import subprocess
import sys
from contextlib import AbstractContextManager, suppress
from functools import cache
from math import ceil
from pathlib import Path

import torch

from unalike.errors import lookup
from unalike.system import number_in
from unalike.version import __version__

TORCH_MEMORY_SHARE = 0.95
"""Fraction of GPU memory for torch's allocator; CUDA contexts take some more."""


def fork_rng(device: torch.device | None = None) -> AbstractContextManager[None]:
    """Restore the random generators of the CPU, and of a GPU if given, at the end.

    torch's own default restores those of all GPUs, and initialises CUDA for that.
    """
    on_gpu = device is not None and device.type == "cuda"
    return torch.random.fork_rng([device] if on_gpu else [])


def best_device() -> str:
    """A GPU where there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def choose_device(name: str) -> str:
    """The device of a name, which may be `auto`; one GPU of several becomes current."""
    gpus = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    available = ["cpu", *(["cuda", *gpus] if torch.cuda.is_available() else [])]
    known = {"auto": best_device(), **{device: device for device in available}}
    device = lookup(known, name, "device")
    if device in gpus:
        torch.cuda.set_device(device)
    return device


def device_of_worker(device: str, job: int, jobs: int) -> str:
    """The device of one of several processes, whose fraction of GPU memory is set."""
    if torch.device(device).type != "cuda":
        return device
    gpus = torch.cuda.device_count() if device == "cuda" else 1
    gpu = f"cuda:{job % gpus}" if device == "cuda" else device
    torch.cuda.set_device(gpu)
    torch.cuda.set_per_process_memory_fraction(
        TORCH_MEMORY_SHARE / ceil(jobs / gpus), gpu
    )
    return gpu


def device_name(device: str, threads: int | None = None) -> str:
    """The name of a device that results report; with the threads of this process."""
    if torch.device(device).type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = threads or torch.get_num_threads()
    return f"{platform.machine()} cpu, {threads} threads"


def cpu_capability() -> str:
    """The CPU instructions that torch uses; the last bits of sums depend on them."""
    return torch.backends.cpu.get_cpu_capability()


PROC = Path("/proc/self")
"""Memory of this process, on Linux."""


def peak_memory_mb(device: str) -> float:
    """Peak memory of this process on a device since `reset_peak_memory`.

    On systems other than Linux that of a CPU is the peak since the process started.
    """
    if torch.device(device).type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    with suppress(OSError):
        return number_in(PROC / "status", "VmHWM:") / 1024
    unit = 1 if sys.platform == "darwin" else 1024  # bytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def reset_peak_memory(device: str) -> None:
    """Reset the peak memory; on a GPU, empty the CUDA cache too."""
    if torch.device(device).type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
        return
    with suppress(OSError):
        (PROC / "clear_refs").write_text("5", "utf-8")


def versions() -> dict[str, str]:
    """Versions of the packages that a result may depend on."""
    return {
        "unalike": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


CHANGES = "+changes"
"""The end of the name of a commit if files differ from it."""


@cache
def commit() -> str:
    """The git commit of the source tree; empty for an installed package."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return ""
    flags = ["--always", "--exclude=*", "--abbrev=40", f"--dirty={CHANGES}"]
    command = ["git", "-C", str(root), "describe", *flags]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()
