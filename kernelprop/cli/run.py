"""The main job: read, propagate, write, print."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelprop.cli import input_kernel, network
from kernelprop.cli.console import complain, console
from kernelprop.cli.depths import keep_of, parse_depths, readable_selection
from kernelprop.cli.input_kernel import KernelOptions
from kernelprop.cli.interrupt import ends_at_once
from kernelprop.cli.network import NetworkOptions
from kernelprop.cli.output import NUMBERS, PICTURES, check_folder, fill
from kernelprop.cli.progress import sign_of_life
from kernelprop.cli.report import Report, as_json, print_report, print_written

if TYPE_CHECKING:
    import numpy as np

    from kernelprop.architecture import Transformer
    from kernelprop.examples import Example
    from kernelprop.results import Evolution

EXAMPLES = ("minilm",)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What is computed, and where it goes."""

    example: str | None = None
    description: Path | None = None
    observables: str = "moments"
    keep: str | None = None
    show: str | None = None
    dtype: str = "float64"
    out: Path = Path("kernelprop-output")
    plots: bool = True
    json: bool = False
    quiet: bool = False


def run(network_options: NetworkOptions, kernel_options: KernelOptions, options: RunOptions) -> None:
    """Do the main job.

    Raises:
        ValueError: for whatever is wrong with the options or their files; nothing is written then.
    """
    check_folder(options.out)
    quiet = options.quiet or options.json
    with sign_of_life("reading", quiet=quiet):
        example = _example(options.example)
        if options.description is not None:
            model, kernel, notes = _described(options.description, network_options, kernel_options, example)
        else:
            model, kernel, notes = _inputs(network_options, kernel_options, example)
    shown = shown_depths(options.show, model.depth)
    what = f"propagating {model.depth} layers of {model.length} positions"
    with sign_of_life(what, quiet=quiet) as hide, ends_at_once(lambda: (hide(), complain("by Ctrl-C", "interrupted"))):
        evolution = _propagate(model, kernel, shown, options)
    evolution = replace(evolution, notes=(*evolution.notes, *notes))
    plain = example is not None and network_options == NetworkOptions() and kernel_options == KernelOptions()
    if plain:
        evolution = replace(evolution, notes=(*evolution.notes, f"example: {options.example}"))
    measured = measured_kernels(evolution)
    report = Report(evolution, mean_cosine(measured))
    with sign_of_life("writing", quiet=quiet):
        heatmaps = shown if options.show is not None else None
        written = _write(report, measured, heatmaps, options)
    publish(report, shown, options.json, options.quiet)
    if not quiet:
        print_written(written, console())


def publish(report: Report, shown: list[int], as_text: bool, quiet: bool) -> None:
    """Print JSON or, unless quiet, the table."""
    if as_text:
        sys.stdout.write(as_json(report) + "\n")
    elif not quiet:
        print_report(report, shown, console())


def shown_depths(text: str | None, layers: int) -> list[int]:
    """Return the depths of the table: those asked for, or a readable selection.

    Raises:
        ValueError: for a depth that the network lacks.
    """
    if text is None:
        return readable_selection(layers)
    depths = parse_depths(text, "--show")
    for depth in depths:
        if not 0 <= depth <= layers:
            raise ValueError(f"--show: depth {depth} is outside 0 to {layers}")
    return list(dict.fromkeys(depths))


def measured_kernels(evolution: "Evolution") -> "np.ndarray | None":
    """Return the kernels of the real network that a result stands beside, ``(L+1, T, T)``, if any."""
    names = [note.removeprefix("example: ") for note in evolution.notes if note.startswith("example: ")]
    return _example(names[0]).kernels if names and names[0] in EXAMPLES else None


def mean_cosine(kernels: "np.ndarray | None") -> "np.ndarray | None":
    """Return the mean cosine of each measured kernel."""
    from kernelprop import observables

    return None if kernels is None else observables.mean_cosine(kernels)


def _example(name: str | None) -> Any:
    from kernelprop import examples

    if name is None:
        return None
    if name not in EXAMPLES:
        raise ValueError(f"--example: {name!r} is unknown; there is {', '.join(EXAMPLES)}")
    return getattr(examples, name)()


def _inputs(
    network_options: NetworkOptions, kernel_options: KernelOptions, example: "Example | None"
) -> tuple["Transformer", "np.ndarray", tuple[str, ...]]:
    """Read and build the network and its input kernel; the length comes from whichever of them has one."""
    if network_options.attention is None and example is None:
        raise ValueError(
            "DESCRIPTION, --attention or --example: nothing to propagate through; see kernelprop evolve --help"
        )
    matrices = network.attention_file(network_options)
    kernel = input_kernel.kernel_from_data(kernel_options)
    if example is not None:
        if network_options.attention is None:
            matrices = example.attention
        if kernel is None and kernel_options.kernel is None:
            kernel = input_kernel.certified(example.kernels[0], "example")
    length = network_options.length if kernel is None else kernel.shape[-1]
    if network_options.length not in (None, length):
        raise ValueError(f"--length: {network_options.length} conflicts with a kernel of {length} positions")
    _refuse_if_hopeless(length)
    model = network.network(network_options, matrices, length)
    if kernel is None:
        kernel = input_kernel.named_kernel(kernel_options, model.length)
    if kernel.shape[-1] != model.length:
        name = kernel_options.kernel or kernel_options.tokens or kernel_options.inputs or "the example's kernel"
        raise ValueError(f"{name}: {kernel.shape[-1]} positions, but the attention has {model.length}")
    return model, kernel, network.attention_notes(matrices)


def _described(
    file: Path, network_options: NetworkOptions, kernel_options: KernelOptions, example: "Example | None"
) -> tuple["Transformer", "np.ndarray", tuple[str, ...]]:
    """Read a description; an input kernel among the options takes the place of its own."""
    from kernelprop.cli.described import read_file, read_network_with_notes

    if network_options != NetworkOptions() or example is not None:
        raise ValueError(f"{file}: describes the whole network; leave --example and the network's options out")
    if kernel_options == KernelOptions():
        described = read_file(file)
        return described.model, described.kernel0, described.notes
    model, notes = read_network_with_notes(file)
    kernel = input_kernel.kernel_from_data(kernel_options)
    return model, input_kernel.named_kernel(kernel_options, model.length) if kernel is None else kernel, notes


def _refuse_if_hopeless(length: int | None) -> None:
    """Refuse a length whose kernels can't be held, before anything of that size is made."""
    from kernelprop import memory

    available = memory.available_bytes()
    # The input kernel, the one in work and a handful of temporaries.
    needed = 5 * 8 * (length or 0) ** 2
    if available is not None and needed > available:
        raise ValueError(
            f"{length} positions: their kernels need {memory.in_words(needed)}, and "
            f"{memory.in_words(available)} are available"
        )


def _propagate(model: "Transformer", kernel: "np.ndarray", shown: list[int], options: RunOptions) -> "Evolution":
    from kernelprop.infinite import propagate
    from kernelprop.precision import float_dtype

    size = kernel.size * float_dtype(options.dtype).itemsize
    keep = keep_of(options.keep, shown, model.depth, size)
    observables: Any = options.observables
    return propagate(model, kernel, keep, observables, dtype=options.dtype)


def _write(
    report: Report, measured: "np.ndarray | None", heatmaps: list[int] | None, options: RunOptions
) -> list[Path]:
    def write(folder: Path) -> None:
        report.evolution.save(folder / "evolution.npz")
        report.evolution.to_csv(folder / "evolution.csv")
        report.evolution.to_json(folder / "evolution.json")
        if report.measured is not None:
            lines = [f"{depth},{value!r}" for depth, value in enumerate(report.measured.tolist())]
            (folder / "measured.csv").write_text("\n".join(["depth,mean_cosine", *lines]) + "\n")
        if options.plots:
            warn_of(folder, report, heatmaps, measured)

    return fill(options.out, write, (*NUMBERS, *PICTURES))


def warn_of(folder: Path, report: Report, heatmaps: list[int] | None, measured: "np.ndarray | None") -> None:
    """Draw the pictures, and tell on stderr of those that could not be drawn."""
    from kernelprop.cli.pictures import draw

    for failure in draw(report.evolution, folder, heatmaps, measured):
        complain(failure, "warning")
