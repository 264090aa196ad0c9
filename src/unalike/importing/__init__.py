"""Importing: tables of edges and nodes become a stored graph."""
