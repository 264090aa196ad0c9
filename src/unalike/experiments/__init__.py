"""Experiments: datasets, splits and methods in, results out."""
