"""Activations shaped for a network of given depth: DKS (arXiv 2110.01765) and TAT (arXiv 2203.08120)."""
