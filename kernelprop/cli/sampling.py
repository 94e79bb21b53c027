"""What the commands share that sample networks: their options, the telling of draws, the end after Ctrl-C."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from kernelprop.cli.interrupt import INTERRUPTED
from kernelprop.cli.options import option, switch
from kernelprop.cli.voice import Voice

if TYPE_CHECKING:
    from kernelprop.architecture import Transformer

NETWORKS = "Sampled networks"
FAMILIES = "gaussian|orthogonal|truncated|xavier"


@dataclass(frozen=True, kw_only=True)
class SamplingOptions:
    """How networks are sampled, beside their widths and number."""

    weights: Annotated[str, option(NETWORKS, "Distribution of the weights (gaussian).", FAMILIES)] = "gaussian"
    gradients: Annotated[bool, switch(NETWORKS, "Every weight's gradient norm too.", "--gradients")] = False
    cotangent: Annotated[
        str, option(NETWORKS, "Where the loss reads: all positions, the last, or their mean (all).", "all|last|mean")
    ] = "all"
    heads: Annotated[int | None, option(NETWORKS, "Heads; the attention's, or 1, if not given.", "H")] = None
    head_width: Annotated[int | None, option(NETWORKS, "Width of a head; d/heads if not given.", "d_k")] = None
    seed: Annotated[int, option(NETWORKS, "Seed of the draws, 0 to 2^32 - 1 (0).", "SEED")] = 0
    dtype: Annotated[str, option(NETWORKS, "float32 (default) or float64.", "TYPE")] = "float32"
    precision: Annotated[
        str, option(NETWORKS, "Of products: all digits of the type, or the device's fastest.", "highest|fast")
    ] = "highest"

    def of(self, model: "Transformer") -> dict[str, Any]:
        """The same as arguments of ``simulate`` and ``compare``."""
        from kernelprop.cotangents import resolve

        same = ("weights", "gradients", "heads", "head_width", "dtype", "precision")
        arguments = {name: getattr(self, name) for name in same}
        return arguments | {"key": self.seed, "cotangent": resolve(self.cotangent, model.length)}


@contextmanager
def sampling(message: str, voice: Voice) -> Iterator[Any]:
    """Yield what is told after every chunk of draws. Off a terminal a line comes first, as compiling takes its time."""
    from kernelprop.cli.draws import draws_done

    # On a terminal the bar is there from the start, and two signs of life would write over each other.
    on_terminal = sys.stderr.isatty()
    with (
        Voice(quiet=voice.silent or on_terminal).working(f"{message}: compiling and drawing") as hide,
        draws_done(message, quiet=voice.silent) as report,
    ):
        if report is None:
            yield None
            return

        def told(done: int, total: int, seconds: float) -> None:
            hide()
            report(done, total, seconds)

        yield told


def leave_if(interrupted: bool) -> None:
    """End with the code of an interrupt, once what was done before it is written and printed."""
    import typer

    if interrupted:
        raise typer.Exit(INTERRUPTED)
