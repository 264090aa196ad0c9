"""Training: the loop, stacks of runs, early stopping, checkpoints, distributed."""
