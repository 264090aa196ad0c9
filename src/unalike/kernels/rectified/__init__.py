"""Kernels of sums that are cut at 0: an offset, a ReLU, and the way back."""
