"""Solves by the ``dks`` package, for `serving` in an interpreter of its own; what returns is the function's values."""

import numpy as np
from dks.base import activation_transform  # pyright: ignore[reportMissingImports]


def prepare(job):
    """``run`` solves for ``depth`` nonlinear layers in sequence."""
    depth, name = job["depth"], job["activation"]

    def run(factor):
        shaped = activation_transform.get_transformed_activations(
            [{"gelu": "gelu_exact", "gelu_tanh": "gelu"}.get(name, name)],
            method=job["stack"].upper(),
            max_slope_func=lambda slope: slope**depth,
            max_curv_func=lambda curvature: depth * curvature,
        )
        (function,) = shaped.values()
        return function(np.array(job["points"]))

    return run
