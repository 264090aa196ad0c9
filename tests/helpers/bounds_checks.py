"""A pytest plugin: compiled loops run on one thread, and all of them must have run.

`NUMBA_BOUNDSCHECK=1` makes an index out of bounds an IndexError, but not inside a
parallel loop, whose threads drop it.
"""

from __future__ import annotations

import inspect
import sys
from functools import wraps
from typing import Any

import numba
import pytest
from numba.core.dispatcher import Dispatcher

compile_function = numba.njit


@wraps(compile_function)
def compile_serial(*arguments: Any, **options: Any) -> Any:
    # A function from the cache does not count what it calls.
    return compile_function(*arguments, **options | {"parallel": False, "cache": False})


numba.njit = compile_serial


def is_compiled(function: Any) -> bool:
    return isinstance(function, Dispatcher)


def compiled_functions() -> dict[str, Dispatcher]:
    """The compiled functions of all modules of unalike that are imported."""
    modules = [sys.modules[name] for name in sorted(sys.modules) if "unalike" in name]
    members = (member for module in modules for member in vars(module).values())
    functions = (
        inspect.unwrap(member, stop=is_compiled)
        for member in members
        if callable(member)
    )
    return {
        f"{function.py_func.__module__}.{function.py_func.__name__}": function
        for function in functions
        if is_compiled(function)
    }


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail unless every compiled function was called."""
    functions = compiled_functions()
    idle = [name for name, function in functions.items() if not function.signatures]
    line = f"\n{len(functions)} compiled functions, not called: {', '.join(idle)}"
    session.config.get_terminal_writer().line(line)
    if idle or not functions or not numba.config.BOUNDSCHECK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
