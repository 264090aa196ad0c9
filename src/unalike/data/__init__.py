"""Graphs and what is learned on them: CSR adjacency, labels, splits, tasks, metrics, stored folders."""
