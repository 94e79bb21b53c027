"""The training studies, drawn from their records.

``python -m figures.training_studies`` reads the records that ``python -m analysis.training`` writes, and draws

- ``figures/training_curves.png``: validation loss against steps, for the arms of study (a);
- ``figures/training_prediction.png``: the loss reached against what is known at initialisation, a point an arm;
- ``figures/training_cosines.png``: token cosine against depth, before, during and after training.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from analysis.training.arms import ARMS
from analysis.training.keeping import RECORDS, read
from analysis.training.outcomes import Row, rows
from analysis.training.prediction import predict
from analysis.training.studies import DEPTH, STEPS, STUDIES
from kernelprop.plotting.saving import save_figure
from kernelprop.plotting.style import COLOURS, GREY, PAGE, in_house_style, new_figure, shades, whole_number_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OF_COSINES = ("vanilla_relu", "espa", "pre_ln", "post_ln")
# 1 − c below this can't be told from 0 in a record of float64 sums.
FLOOR = 1e-13
MARKERS = "os^D"
# In typographic points: dots whose numbers would overlap, and the room that a number needs on the right.
TOGETHER, NEIGHBOUR = (12.0, 4.0), 24.0
# An arm's number, and where it stands.
Point = tuple[int, float, float]


@in_house_style
def curves(made: list[Row], records: Path = RECORDS) -> "Figure":
    """Validation loss against steps, mean over seeds, with the source's entropies."""
    figure = new_figure(PAGE, 0.55 * PAGE)
    axes = figure.subplots()
    styles = _styles([row.comparison.arm for row in made])
    for row in made:
        stored = [read(run, records) for run in row.comparison.runs(row.rate)]
        stored = [one for one in stored if one.words["final"] is not None]
        if not stored:
            continue
        mean = np.mean([one.arrays["validation"] for one in stored], axis=0)
        label = f"{ARMS[row.comparison.arm].label} ({row.rate:g})"
        colour, line = styles[row.comparison.arm]
        axes.plot(stored[0].arrays["done"], mean, line, color=colour, label=label)
    _levels(axes, _levels_of(made, records))
    axes.set_xlabel("step")
    axes.set_ylabel("validation loss, nats")
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), title="arm (learning rate)")
    return figure


@in_house_style
def prediction(made: list[Row], records: Path = RECORDS) -> "Figure":
    """Loss reached against correlation at depth, and the spread of the value gradients, both in closed form.

    They know nothing of the optimiser: arms trained by AdamW alone.
    """
    made = [row for row in made if ARMS[row.comparison.arm].optimiser == "adamw"]
    figure = new_figure(PAGE, max(0.5 * PAGE, 0.17 * len(made)))
    left, right = figure.subplots(1, 2, sharey=True)
    styles = _styles([row.comparison.arm for row in made])
    left.set_xscale("log")
    right.set_xscale("symlog", linthresh=0.1)
    points: dict[Axes, list[Point]] = {left: [], right: []}
    for number, row in enumerate(made, start=1):
        known = predict(row.comparison.arm)
        colour, label = styles[row.comparison.arm][0], f"{number} {ARMS[row.comparison.arm].label}"
        marker = MARKERS[(number - 1) // len(COLOURS) % len(MARKERS)]
        places = ((left, max(1 - known.correlation, FLOOR)), (right, known.spread))
        for axes, x in places:
            if np.isfinite(x) and np.isfinite(row.loss):
                axes.plot(x, row.loss, marker, color=colour, label=label, markersize=4)
                points[axes].append((number, x, row.loss))
    left.set_xlim(FLOOR / 20, 3000)
    left.set_xlabel("1 − mean correlation\nbehind the last layer")
    left.set_ylabel("validation loss reached, nats")
    right.set_xlim(-0.02, 200)
    right.set_xlabel("squared value gradients over layers:\nlog₁₀ of largest over smallest")
    for axes in (left, right):
        _levels(axes, _levels_of(made, records))
    handles, labels = left.get_legend_handles_labels()
    figure.suptitle("networks at initialisation in closed form, and the loss that they reach", fontsize=8)
    figure.legend(handles, labels, loc="outside right center")
    figure.draw_without_rendering()  # only then the axes have their places
    for axes in (left, right):
        _number(axes, points[axes], figure.dpi / 72)
    return figure


@in_house_style
def cosines(made: list[Row], records: Path = RECORDS) -> "Figure":
    """Token cosine against depth: a panel an arm, a line a measurement."""
    figure = new_figure(PAGE, 0.36 * PAGE)
    panels = figure.subplots(1, len(made), sharey=True, squeeze=False)[0]
    for axes, row in zip(panels, made, strict=True):
        arrays = read(row.comparison.runs(row.rate)[0], records).arrays
        done = arrays["done"]
        chosen = [0, 1, 2, len(done) // 2, len(done) - 1]
        for index, colour in zip(chosen, shades(len(chosen)), strict=True):
            axes.plot(arrays["token_cosine"][index], color=colour, label=f"step {done[index]}")
        axes.set_title(ARMS[row.comparison.arm].label)
        whole_number_axis(axes, row.comparison.depth, "depth")
        axes.set_ylim(-0.05, 1.05)
    panels[0].set_ylabel("mean cosine of two positions")
    panels[-1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


def _number(axes: "Axes", points: list[Point], pixels: float) -> None:
    """Write the numbers of the points beside them; points that lie together share a label."""
    together: list[tuple[np.ndarray, list[Point]]] = []
    for point in points:
        place = axes.transData.transform(point[1:]) / pixels
        near = [group for middle, group in together if (np.abs(place - middle) < TOGETHER).all()]
        near[0].append(point) if near else together.append((place, [point]))
    for middle, group in together:
        numbers = ", ".join(str(point[0]) for point in sorted(group))
        rightmost = max(group, key=lambda point: point[1])
        ahead = [place - middle for place, _ in together]
        if any(0 < right < NEIGHBOUR and abs(up) < TOGETHER[1] for right, up in ahead):
            axes.annotate(numbers, group[0][1:], (0, 4), textcoords="offset points", ha="center")
        else:
            axes.annotate(numbers, rightmost[1:], (4, 0), textcoords="offset points", va="center")


def _styles(arms: list[str]) -> dict[str, tuple[str, str]]:
    """A colour and a line for each arm, the same colour again with another line when they are used up."""
    count, lines = len(COLOURS), ("-", "--", ":", "-.")
    return {
        arm: (COLOURS[index % count], lines[index // count % len(lines)])
        for index, arm in enumerate(dict.fromkeys(arms))
    }


def _levels_of(made: list[Row], records: Path) -> dict[str, float]:
    for row in made:
        words = read(row.comparison.runs(row.rate)[0], records).words
        if words["final"] is not None:
            return {name: words["levels"][name] for name in ("unigram", "bigram")}
    return {}


def _levels(axes: "Axes", levels: dict[str, float]) -> None:
    for name, value in levels.items():
        axes.axhline(value, color=GREY, linewidth=0.8, linestyle=":")
        place = (0.995, value)
        axes.annotate(
            name, place, (0, -2), ("axes fraction", "data"), "offset points", ha="right", va="top", color=GREY
        )


def comparable(records: Path = RECORDS) -> list[Row]:
    """Every arm once, at the common depth and steps."""
    found: dict[str, Row] = {}
    for study in STUDIES.values():
        for row in rows(study, records):
            if (row.comparison.depth, row.comparison.steps) == (DEPTH, STEPS):
                found.setdefault(row.comparison.arm, row)
    return list(found.values())


def main(records: Path = RECORDS, folder: Path = Path(__file__).parent) -> list[Path]:
    """Draw what there are records for.

    Raises:
        ValueError: where there are none, with the command that makes them.
    """
    everything = comparable(records)
    if not everything:
        raise ValueError(f"{records}: no arm is finished; python -m analysis.training makes them")
    figures = {"training_prediction": prediction(everything, records)}
    of_a = [row for row in everything if row.comparison.arm in STUDIES["a"].arms()]
    if of_a:
        figures["training_curves"] = curves(of_a, records)
    shown = [row for row in everything if row.comparison.arm in OF_COSINES and np.isfinite(row.loss)]
    if shown:
        figures["training_cosines"] = cosines(shown, records)
    files = []
    for name, figure in figures.items():
        for ending in ("png", "svg"):
            files.append(folder / f"{name}.{ending}")
            save_figure(figure, files[-1])
    return files


if __name__ == "__main__":
    try:
        print("\n".join(map(str, main())))
    except ValueError as error:
        sys.exit(f"error: {error}")
