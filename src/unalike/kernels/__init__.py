"""Kernels: the few loops that touch sparse memory, for each kind of device.

Each module of this package offers the same functions. `plain` says what they mean in
a few tensor operations and is the oracle of the tests.
"""

from importlib import import_module
from types import ModuleType

import torch


def kernels_of(device: torch.device, package: str = __name__) -> ModuleType:
    """The kernels of a package that run on a device."""
    return import_module(f"{package}.{device.type}")
