"""Kernels of attention: weighted sums of neighbours, where the scores give the weights.

`plain` says what they mean and is the oracle of the tests; torch finds its gradients.
"""

LEAK = 0.2
"""What is kept of negative scores (Veličković et al. 2018)."""
