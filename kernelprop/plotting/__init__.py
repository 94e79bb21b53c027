"""Results as matplotlib figures, made without a display.

Every function returns a ``matplotlib.figure.Figure`` that no global state knows of: pyplot is never used, the
configured backend never started. ``save_figure`` writes one whole.
"""

from kernelprop.plotting.collapse import rank_collapse
from kernelprop.plotting.comparison import measured_profile, prediction_and_measurement
from kernelprop.plotting.gradients import gradient_profile
from kernelprop.plotting.heatmaps import kernel_heatmaps
from kernelprop.plotting.measured import measured_against_theory
from kernelprop.plotting.saving import save_figure
from kernelprop.plotting.spectrum import spectrum

__all__ = [
    "gradient_profile",
    "kernel_heatmaps",
    "measured_against_theory",
    "measured_profile",
    "prediction_and_measurement",
    "rank_collapse",
    "save_figure",
    "spectrum",
]
