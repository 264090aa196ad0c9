"""Public names of a package that are imported on first use."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

DECLARATION = re.compile(r"from (unalike\S*) import \(?\s*(\w+) as ")


def lazy_exports(
    package: str, file: Path
) -> tuple[Callable[[str], Any], Callable[[], list[str]], dict[str, str]]:
    """`__getattr__`, `__dir__` and the module of each public name of a package.

    The file declares the names to type checkers: `from unalike.x import Name as Name`.
    """
    declared = DECLARATION.findall(file.read_text("utf-8"))
    exports = {name: module.removeprefix(f"{package}.") for module, name in declared}

    def get(name: str) -> Any:
        if name not in exports:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        return getattr(import_module(f"{package}.{exports[name]}"), name)

    return get, lambda: sorted(exports), exports
