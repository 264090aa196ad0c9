"""Import graphs from CSV, TSV, text and Parquet tables of edges and nodes."""

from __future__ import annotations
