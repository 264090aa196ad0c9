"""Wikis: their pages, links and views become a collection, and that a graph."""
