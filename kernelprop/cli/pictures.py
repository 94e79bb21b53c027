"""The pictures that the command writes beside its numbers."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from kernelprop.results import Evolution


def draw(
    evolution: "Evolution", folder: Path, depths: Sequence[int] | None, measured: "np.ndarray | None"
) -> list[str]:
    """Write all pictures that an evolution allows; return what kept one from being drawn, in a line each.

    A picture is never worth the numbers: whatever goes wrong with one is told, and the run goes on.

    Args:
        evolution: the result.
        folder: where the pictures go.
        depths: of the heat maps; the evolution's own choice if None. Those without a kept kernel are left out.
        measured: kernels of the real network, ``(L+1, T, T)``.
    """
    try:
        import matplotlib  # noqa: F401 - it reads its configuration now rather than in every picture

        from kernelprop import plotting
    except Exception as error:  # such as matplotlib refusing its configuration
        return [f"no pictures: {_one_line(error)}"]
    kept = None if depths is None else [depth for depth in depths if depth in evolution.depth]
    figures: dict[str, Callable[[], Any]] = {
        "rank-collapse.png": lambda: plotting.rank_collapse(evolution),
        "kernels.png": lambda: plotting.kernel_heatmaps(evolution, kept or None),
    }
    if evolution.eigenvalues is not None:
        figures["spectrum.png"] = lambda: plotting.spectrum(evolution)
    if measured is not None:
        figures["measured.png"] = lambda: plotting.measured_against_theory(evolution, measured)
    failures = []
    for name, figure in figures.items():
        try:
            plotting.save_figure(figure(), folder / name)
        except Exception as error:
            failures.append(f"{name} was not drawn: {_one_line(error)}")
    return failures


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
