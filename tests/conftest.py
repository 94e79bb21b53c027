"""Strict JAX settings for the whole suite: silent promotion of ranks is an error; and which rooms are slow."""

from pathlib import Path

import jax
import pytest
from hypothesis import HealthCheck, settings

jax.config.update("jax_numpy_rank_promotion", "raise")

settings.register_profile(
    "kernelprop", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("kernelprop")

# Monte-Carlo and autodiff comparisons, minutes of compiling together: the default run must stay under five.
SLOW = (
    "activations/test_functions.py",
    "analysis/",
    "cli/test_design.py",
    "cli/test_train.py",
    "designs/test_design.py",
    "finite/",
    "layers/test_block_backward.py",
    "layers/test_forward.py",
    "layers/test_random_attention.py",
    "layers/test_random_backward.py",
    "layers/test_random_logits.py",
    "test_chains.py",
    "test_network_shaping.py",
    "test_random_propagation.py",
    "test_tangents.py",
    "training/",
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow rooms before the marks are selected."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and item.path.relative_to(here).as_posix().startswith(SLOW):
            item.add_marker(pytest.mark.slow)
