"""Kernels of attention: weighted sums of neighbours, where the scores give the weights.

`plain` says what they mean and is the oracle of the tests; torch finds its gradients.
"""

from torch import Tensor

LEAK = 0.2
"""What is kept of negative scores (Veličković et al. 2018)."""

Attended = tuple[Tensor, Tensor, Tensor]
"""What nodes gather, the logs of the sums of their weights, and how it leans.

The last is the slope of what a node gathers by its own target: the sum over neighbours
of weight, x and what the slope of LeakyReLU is above its mean. It has no width where no
slopes are wanted.
"""
