"""The command line, one module per command; commands are imported when they run."""

from __future__ import annotations
