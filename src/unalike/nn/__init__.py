"""Layers, sparse products and their kernels."""
