"""Models: what was learned, kept in one file and asked about nodes old and new."""

from __future__ import annotations
