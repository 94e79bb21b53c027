"""The data that the command's options name."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelprop.training.data.source import Source

# Which kinds of data an option belongs to: given with another it would be ignored, so it is refused.
BELONGS = {
    "vocabulary": ("markov", "copy", "reversal", "a file"),
    "lag": ("copy",),
    "unit": ("a file",),
    "characters": ("a file",),
    "data_seed": ("markov", "reversal"),
}
NAMED = ("markov", "copy", "reversal", "documentation")


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """What was asked for, None where nothing was."""

    data: str = "markov"
    vocabulary: int | None = None
    lag: int | None = None
    unit: str | None = None
    characters: int | None = None
    data_seed: int | None = None


def training_data(options: DataOptions) -> "Source":
    """Make the source, with the library's own defaults for what isn't given.

    Raises:
        ValueError: for a file that can't be read, and for options that don't belong to the data.
    """
    from kernelprop import training

    kind = options.data if options.data in NAMED else "a file"
    given = {name: value for name, value in asdict(options).items() if name != "data" and value is not None}
    for name in given:
        if kind not in BELONGS[name]:
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option}: has no meaning for --data {kind}; it belongs to {', '.join(BELONGS[name])}")
    makers: Mapping[str, Callable[..., Any]] = {
        "markov": training.markov,
        "copy": training.copy_back,
        "reversal": training.reversal,
        "documentation": training.documentation,
        "a file": lambda **numbers: training.corpus(options.data, **numbers),
    }
    if "data_seed" in given:
        given["seed"] = given.pop("data_seed")
    if kind == "reversal" and "vocabulary" in given:
        given["words"] = given.pop("vocabulary")
    with_place = f"--data {options.data}: no such file, and none of {', '.join(NAMED)}"
    try:
        return makers[kind](**given)
    except ValueError as error:
        if str(error) == f"{options.data}: no such file":
            raise ValueError(with_place) from None
        raise
