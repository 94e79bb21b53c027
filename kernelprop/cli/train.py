"""``kernelprop train``: a training run of the network that a description describes."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelprop.cli.output import check_folder, fill
from kernelprop.cli.results import print_lines
from kernelprop.cli.training_data import DataOptions, training_data
from kernelprop.cli.voice import Voice

if TYPE_CHECKING:
    from rich.console import Console

    from kernelprop.training.loop import Now
    from kernelprop.training.result import TrainingRun

NAMES = ("training.npz", "training.csv", "training.json")
NETWORK, DATA, RECIPE, OUTPUT = "Network", "Data", "Recipe", "Output"
# Lines of progress where there is no terminal to draw a bar on.
LINES = 20


def _option(panel: str, text: str, metavar: str, *names: str):
    return typer.Option(*names, help=text, metavar=metavar, rich_help_panel=panel, show_default=False)


def train(
    file: Annotated[Path, typer.Argument(help="A description (.toml), or a result that has one (.npz).")],
    width: Annotated[int, _option(NETWORK, "Width d (64).", "d")] = 64,
    heads: Annotated[int | None, _option(NETWORK, "Heads; the attention's, or 1, if not given.", "H")] = None,
    weights: Annotated[str, _option(NETWORK, "orthogonal (default), gaussian, truncated or xavier.", "NAME")] = (
        "orthogonal"
    ),
    trainable: Annotated[
        str | None,
        _option(NETWORK, "Beside weights: any of bias, rescale, mix, skip, branch; mix where values skip.", "NAME,..."),
    ] = None,
    embedding_scale: Annotated[float, _option(NETWORK, "Standard deviation of the embeddings (1).", "NUMBER")] = 1.0,
    data: Annotated[str, _option(DATA, "markov (default), copy, reversal, documentation; or text.", "NAME|PATH")] = (
        "markov"
    ),
    vocabulary: Annotated[int | None, _option(DATA, "Symbols (16); of a file the most ids.", "V")] = None,
    lag: Annotated[int | None, _option(DATA, "copy: how far back (4).", "N")] = None,
    unit: Annotated[str | None, _option(DATA, "Of a file: character (default), byte or word.", "NAME")] = None,
    characters: Annotated[int | None, _option(DATA, "Of a file: the most to read.", "N")] = None,
    data_seed: Annotated[int | None, _option(DATA, "Of the Markov source, or the dictionary (0).", "SEED")] = None,
    steps: Annotated[int, _option(RECIPE, "Steps (300).", "N")] = 300,
    batch: Annotated[int, _option(RECIPE, "Sequences a step (16).", "N")] = 16,
    optimiser: Annotated[str, _option(RECIPE, "adamw (default) or sgd, with momentum.", "NAME")] = "adamw",
    learning_rate: Annotated[float, _option(RECIPE, "At its highest (0.001).", "NUMBER")] = 1e-3,
    warmup: Annotated[int | None, _option(RECIPE, "Steps to get there (a sixth of all).", "N")] = None,
    clip: Annotated[float, _option(RECIPE, "Largest norm of the gradient (1); 0 is no limit.", "NUMBER")] = 1.0,
    weight_decay: Annotated[float, _option(RECIPE, "Of matrices (0).", "NUMBER")] = 0.0,
    seed: Annotated[int, _option(RECIPE, "Of weights and batches (0).", "SEED")] = 0,
    points: Annotated[int, _option(OUTPUT, "How often to measure (11).", "N")] = 11,
    checkpoint: Annotated[
        Path | None, _option(OUTPUT, "Where to keep the run; an existing file is gone on with.", "FILE")
    ] = None,
    out: Annotated[Path, _option(OUTPUT, "Folder for results (kernelprop-output).", "FOLDER")] = Path(
        "kernelprop-output"
    ),
    dtype: Annotated[str, _option(OUTPUT, "float32 (default) or float64.", "TYPE")] = "float32",
    json: Annotated[bool, typer.Option("--json", help="Print strict JSON instead of the table.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Train the network, and watch its loss, token cosines and gradients.

    Tokens are embedded, with trained positions if the description has some, and
    go through the network at this width; a readout that starts at zero predicts
    the next one. Losses are in nats.

    [bold]Examples[/]

    kernelprop train network.toml --width 64 --heads 2 --steps 300
    kernelprop train network.toml --data book.txt --checkpoint run.npz
    kernelprop train network.toml --data copy --lag 8 --trainable bias,rescale
    """
    from kernelprop.cli.described import read_network
    from kernelprop.training.recipe import Recipe, Watch

    check_folder(out)
    if checkpoint is not None and not checkpoint.parent.is_dir():
        raise ValueError(f"--checkpoint {checkpoint}: the folder {checkpoint.parent} does not exist")
    how: Any = optimiser
    recipe = Recipe(
        steps=steps,
        batch=batch,
        optimiser=how,
        learning_rate=learning_rate,
        warmup=steps // 6 if warmup is None else warmup,
        clip=clip or None,
        weight_decay=weight_decay,
    )
    watch = Watch(points=points)
    voice = Voice(json, quiet)
    with voice.working("reading"):
        model = read_network(file)
        source = training_data(
            DataOptions(
                data=data, vocabulary=vocabulary, lag=lag, unit=unit, characters=characters, data_seed=data_seed
            )
        )
        from kernelprop.training.run import train as run
    with _bar(voice.silent) as progress:
        found = run(
            model,
            source,
            width=width,
            heads=heads,
            weights=weights,
            trainable=None if trainable is None else tuple(part.strip() for part in trainable.split(",")),
            embedding_scale=embedding_scale,
            recipe=recipe,
            watch=watch,
            seed=seed,
            dtype=dtype,
            checkpoint=checkpoint,
            progress=progress,
        )
    written = fill(out, lambda folder: _write(found, folder), NAMES)
    publish(found, written, voice)


def publish(found: "TrainingRun", written: list[Path], voice: Voice) -> None:
    """Print a training run as strict JSON or, unless quiet, as a table of its measurements."""
    voice.answer(found.summary, lambda stream: _print(found, written, stream))


@contextmanager
def _bar(silent: bool) -> Iterator[Any]:
    """What is told after every step: a bar on a terminal, some lines on stderr elsewhere, nothing if not wanted."""
    if silent:
        yield None
    elif not sys.stderr.isatty():
        yield _line
    else:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        with Progress(
            TextColumn("step {task.completed:.0f} of {task.total:.0f}"),
            BarColumn(),
            TextColumn("{task.description}"),
            console=Console(stderr=True),
            transient=True,
        ) as bar:
            task = bar.add_task("starting")
            yield lambda now: bar.update(task, completed=now.done, total=now.steps, description=_words(now))


def _line(now: "Now") -> None:
    if now.done == 1 or now.done % max(now.steps // LINES, 1) == 0 or now.done == now.steps:
        print(f"step {now.done} of {now.steps}: {_words(now)}", file=sys.stderr, flush=True)


def _words(now: "Now") -> str:
    left = "" if now.done == now.steps or now.seconds_left != now.seconds_left else f", {_time(now.seconds_left)} left"
    return f"loss {now.loss:.4f}, validation {now.validation:.4f}{left}"


def _time(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"


def _write(found: "TrainingRun", folder: Path) -> None:
    found.save(folder / "training.npz")
    found.to_csv(folder / "training.csv")
    found.to_json(folder / "training.json")


def _print(found: "TrainingRun", written: list[Path], stream: "Console") -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("steps", "training\nloss", "validation\nloss", "token cosine\ninput", "token cosine\nlast layer"):
        table.add_column(title, justify="right", no_wrap=True)
    losses = found.loss.tolist()
    for row in found.table():
        done = row["done"]
        training = f"{losses[done]:.4f}" if done < len(losses) else ""
        validation = f"{row['validation_loss']:.4f} +- {row['validation_stderr']:.4f}"
        table.add_row(
            str(done), training, validation, f"{row['token_cosine_first']:.4f}", f"{row['token_cosine_last']:.4f}"
        )
    stream.print(table)
    compared = ", ".join(f"{name} {value:.4f}" for name, value in found.levels.items())
    lines = [
        f"data: {found.data}; {compared}",
        f"final validation loss {float(found.final.mean):.4f} +- {float(found.final.stderr):.4f} over "
        f"{found.final.n} batches; {found.sizes['trained']:,} trained numbers; {_time(found.seconds)}",
        f"the table's validation loss: over the first {found.validation.n} of these batches, the same ones in every "
        "row",
        *found.notes,
    ]
    print_lines(lines, written, stream)
