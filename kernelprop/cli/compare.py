"""``kernelprop compare``: the infinite-width prediction beside sampled networks of several widths."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelprop.cli.options import option, takes_options
from kernelprop.cli.results import OutputOptions, print_lines, write_numbers
from kernelprop.cli.sampling import NETWORKS, SamplingOptions, leave_if, sampling
from kernelprop.cli.voice import Voice
from kernelprop.diagnosis.collapse import unless_rounding

if TYPE_CHECKING:
    from rich.console import Console

    from kernelprop.finite.comparison import Comparison
    from kernelprop.finite.limits import Largest

NAMES = ("comparison.npz", "comparison.csv", "comparison.json", "comparison.png")
ROUNDED = ("difference", "stderr", "limit", "slope", "misfit")


@takes_options
def compare(
    file: Annotated[Path, typer.Argument(help="A description (.toml), or a result that has one (.npz).")],
    *,
    widths: Annotated[str, option(NETWORKS, "Their widths, with commas (64,128,256).", "WIDTHS")] = "64,128,256",
    draws: Annotated[int, option(NETWORKS, "Independent networks of each width (64).", "N")] = 64,
    options: SamplingOptions,
    output: OutputOptions,
) -> None:
    """Does theory describe networks of a width that one can build?

    Beside each prediction stands the mean at the largest width, with the
    difference in standard errors (z), and the limit of the differences at
    infinite width: a finite-width effect falls like 1/d and leaves a limit of
    zero, an error doesn't. Three widths or more check the 1/d law: its misfit is
    chi-squared per degree of freedom, about 1 where it holds. Ctrl-C keeps the
    widths that are done (exit code 130).

    [bold]Examples[/]

    kernelprop compare network.toml
    kernelprop compare network.toml --widths 128,256,512 --draws 200 --gradients
    """
    from kernelprop.cli.described import read_file
    from kernelprop.cli.output import check_folder, fill
    from kernelprop.finite.comparison import compare

    check_folder(output.out)
    sizes = _sizes(widths)
    voice = output.voice
    with voice.working("reading"):
        described = read_file(file)
    model = described.model
    with sampling(f"widths {widths}", voice) as progress:
        comparison = compare(
            model, described.kernel0, widths=sizes, draws=draws, progress=progress, **options.of(model)
        )
    with voice.working("writing"):
        written = fill(output.out, lambda folder: _write(comparison, folder, plots=not output.no_plots), NAMES)
    publish(comparison, written, voice)
    leave_if(len(comparison.widths) < len(set(sizes)) or bool((comparison.draws < draws).any()))


def publish(comparison: "Comparison", written: list[Path], voice: Voice) -> None:
    """Print a comparison as strict JSON or, unless quiet, as a table of chosen depths and layers."""
    voice.answer(lambda: _content(comparison), lambda stream: _print(comparison, written, stream))


def draw(comparison: "Comparison", folder: Path) -> None:
    """Draw the comparison's picture into a folder."""
    from kernelprop import plotting

    plotting.save_figure(plotting.prediction_and_measurement(comparison), folder / "comparison.png")


def _sizes(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--widths: whole numbers with commas are wanted, not {text!r}") from None


def _print(comparison: "Comparison", written: list[Path], stream: "Console") -> None:
    from kernelprop.cli.columns import print_columns

    chosen = _chosen(comparison)
    for kind in ("depth", "layer"):
        # What is zero in theory and in every network (keys, while the queries are) says nothing more.
        rows = [
            _readable(row, comparison.dtype) for row in chosen if kind in row and (row["predicted"] or row["measured"])
        ]
        if rows:
            print_columns(rows, stream)
    widths, draws = (", ".join(map(str, values.tolist())) for values in (comparison.widths, comparison.draws))
    lines = [
        f"measured at width {comparison.widths[-1]}; limit: measured minus predicted at infinite width; "
        f"{draws} networks of width {widths}",
        "of kernels and diagonals the entry furthest off is shown, whose z is large by being chosen",
        f"of the other numbers the largest |z| is {_largest(chosen):.2f}, with the effect of the finite width in it",
        *_of_limits(comparison),
        *comparison.notes,
    ]
    print_lines(lines, written, stream)


def _chosen(comparison: "Comparison") -> list[dict[str, Any]]:
    """The rows of readable depths and layers; of matrices and vectors the entries furthest off."""
    from kernelprop.cli.depths import readable_selection

    depths = set(readable_selection(len(comparison.predicted["mean_correlation"]) - 1)) | {1}
    return [row for row in comparison.table() if row.get("depth", row.get("layer")) in depths]


def _readable(row: dict[str, Any], dtype: str = "float32") -> dict[str, Any]:
    """Differences in three digits, which are more than they have, and z in hundredths."""
    three = {name: float(f"{row[name]:.3g}") for name in ROUNDED if name in row}
    zeros = {}
    if row["name"] == "mean_correlation":
        types = {"predicted": "float64", "measured": dtype}
        zeros = {name: unless_rounding(row[name], one) for name, one in types.items()}
    return row | three | zeros | {"z": round(row["z"], 2)}


def _largest(rows: list[dict[str, Any]]) -> float:
    return max((abs(row["z"]) for row in rows if "[" not in row["name"] and row["z"] == row["z"]), default=0.0)


def _of_limits(comparison: "Comparison") -> list[str]:
    """What the limits say of the formulas, what they leave out and why, and how well the law fits that they are of."""
    from kernelprop.finite.limits import largest_limit, left_out, worst_fit

    limit, fit = largest_limit(comparison), worst_fit(comparison)
    if limit is None:
        return []
    names = left_out(comparison)
    why = "isn't linear in the kernel" + (", or is taken at first order," if "query" in names else "")
    lines = [
        f"limits of kernel entries, diagonals and gradient norms: the largest of {limit.among} is {limit.value:.2f} of "
        f"its standard errors, {limit.place}; {_of_chance(limit)}",
        f"left out of it: {', '.join(names).replace('_', ' ')}; an average over networks of what {why} differs by L/d "
        "and its powers, and leaves a limit that is no error",
    ]
    if fit is None:
        return [*lines, "nothing checks the 1/d law of the fit: three widths or more do"]
    return [
        *lines,
        f"1/d law of the same numbers: the largest misfit (chi-squared per degree of freedom, about 1) is "
        f"{fit.value:.2f}, {fit.place}; {_of_chance(fit)}",
    ]


def _of_chance(largest: "Largest") -> str:
    return f"chance alone gives more than {largest.chance:.2g} in 1 of 20 comparisons"


def _write(comparison: "Comparison", folder: Path, *, plots: bool) -> None:
    write_numbers(folder, "comparison", comparison, _content(comparison), comparison=comparison.table())
    if plots:
        draw(comparison, folder)


def _content(comparison: "Comparison") -> dict[str, Any]:
    from kernelprop.finite.limits import largest_limit, left_out, worst_fit

    largest = {"largest_limit": largest_limit(comparison), "largest_misfit": worst_fit(comparison)}
    return {
        "format": "kernelprop comparison",
        "widths": comparison.widths.tolist(),
        "draws": comparison.draws.tolist(),
        "dtype": comparison.dtype,
        "notes": comparison.notes,
        **{name: found._asdict() for name, found in largest.items() if found is not None},
        "left_out_of_these": left_out(comparison),
        "rows": comparison.table(),
    }
