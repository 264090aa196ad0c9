"""Setting: a method with all its options, and its view of a dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from unalike.errors import lookup
from unalike.experiments.fingerprint import digest
from unalike.experiments.view import AS_USUAL, View
from unalike.methods import METHODS, name_of
from unalike.methods.method import Method
from unalike.options import options_of, with_options

WHOLE = "full"
"""The batching of methods that have none to choose."""


@dataclass(frozen=True)
class Setting:
    """What is the same for all splits of a dataset."""

    method: Method
    view: View = AS_USUAL

    @cached_property
    def facts(self) -> dict[str, Any]:
        """The setting as JSON can tell it."""
        return {
            "method": name_of(self.method),
            "options": options_of(self.method),
            "view": self.view.changes,
        }

    @cached_property
    def key(self) -> str:
        """A digest of all of it."""
        return digest(self.facts)

    @cached_property
    def shape(self) -> str:
        """A digest of what the runs of one stack share."""
        free = self.method.may_differ
        told = self.facts["options"].items()
        shared = {name: value for name, value in told if name not in free}
        return digest({**self.facts, "options": shared})

    @property
    def batching(self) -> str:
        """The name of its batching."""
        return str(self.facts["options"].get("batching", WHOLE))

    def words(self, *, shared: bool = False) -> str:
        """The options that are not the usual ones; or those that a stack shares."""
        usual = options_of(type(self.method)())
        told = {**self.facts["options"], **self.view.changes}
        free = self.method.may_differ if shared else ()
        return " ".join(
            f"{name}={value}"
            for name, value in told.items()
            if usual.get(name) != value and name not in free
        )


def build(name: str, options: Mapping[str, Any]) -> Method:
    """A method of the table with some options, those of its batching among them."""
    return with_options(lookup(METHODS, name, "method")(), options, name)


def revived(facts: Mapping[str, Any]) -> Setting:
    """The setting that facts tell; options that were unknown then are as usual."""
    return Setting(build(facts["method"], facts["options"]), View(**facts["view"]))
