"""Datasets: graphs by name."""
