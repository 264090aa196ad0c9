"""Layers: the pieces that networks are made of."""
