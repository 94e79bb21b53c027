"""Signal propagation in transformers at initialisation: kernels forward, gradient norms backward.

Names load when they are first used, so that ``import kernelprop`` costs nothing.
"""
