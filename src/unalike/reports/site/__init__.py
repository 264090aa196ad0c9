"""The site: every result on one page that needs no network."""

from __future__ import annotations
