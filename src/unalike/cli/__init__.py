"""The command line: one file per command, imported only when asked for."""

from __future__ import annotations
