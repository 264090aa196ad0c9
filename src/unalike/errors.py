"""The one error a user meets, and the look-up that suggests the right name."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TypeVar

Entry = TypeVar("Entry")


class UserError(Exception):
    """A mistake the user can mend, told in one line."""


def lookup(table: Mapping[str, Entry], name: str, kind: str) -> Entry:
    """The entry of a table, or a `UserError` that names the nearest entries."""
    if name in table:
        return table[name]
    near = get_close_matches(name, table, n=1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    raise UserError(f"No {kind} '{name}'.{hint} Known: {', '.join(table)}.")
