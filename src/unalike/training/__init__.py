"""Training: one loop over a stack of runs that share a graph."""
