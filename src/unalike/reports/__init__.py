"""Reports: numbers in words, tables and figures."""

from __future__ import annotations
