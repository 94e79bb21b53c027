"""What the processes of one run tell each other; a single process tells itself."""

from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils


def on_every_process(tree: Any) -> Any:
    """Arrays spread over the devices of all processes, whole, in numpy."""
    if jax.process_count() > 1:
        tree = multihost_utils.process_allgather(tree, tiled=True)
    return jax.tree.map(np.asarray, tree)


def of_every_process(value: float) -> list[float]:
    """Each process's value (in single precision, where there are several), the same list on all of them."""
    if jax.process_count() == 1:
        return [value]
    return multihost_utils.process_allgather(np.float32(value)).tolist()
