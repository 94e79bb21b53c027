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


MEMORY_MAPS = Path("/proc/self/maps")
MANY_MAPS = 16_000


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Between two files, drop the compiled programs once they hold many memory maps.

    Each program that XLA compiles for the CPU keeps some maps of its process, of which Linux allows 65,530; a
    compilation that is refused one ends the process.
    """
    at_a_border = nextitem is None or nextitem.path != item.path
    if at_a_border and MEMORY_MAPS.exists() and MEMORY_MAPS.read_bytes().count(b"\n") > MANY_MAPS:
        jax.clear_caches()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow rooms before the marks are selected."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and item.path.relative_to(here).as_posix().startswith(SLOW):
            item.add_marker(pytest.mark.slow)
