"""The report page: all results in one folder that a browser opens without network."""

from __future__ import annotations
