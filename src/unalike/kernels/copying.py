"""Copying: a run of numbers in memory, for compiled loops.

The system's own copy takes a run of some hundred numbers twice as fast as a loop that
numba compiles, be it over numbers or a slice.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic


@intrinsic
def copy_run(
    typing: Any, to: Any, to_begin: Any, of: Any, of_begin: Any, length: Any
) -> Any:
    """Put of[of_begin : of_begin + length] at to[to_begin]; both lie without gaps."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type = signature.args[0]
        target, source = (
            builder.gep(
                context.make_array(array_type)(context, builder, array).data, [begin]
            )
            for array, begin in (arguments[0:2], arguments[2:4])
        )
        size = context.get_abi_sizeof(context.get_data_type(array_type.dtype))
        cgutils.raw_memcpy(builder, target, source, arguments[4], size)
        return context.get_dummy_value()

    whole = types.int64
    return types.void(to, whole, of, whole, whole), generate
