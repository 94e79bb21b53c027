"""Ratios to the contenders, the targets for them, and what to say of each."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

# A whole job has what a user pays once: describing, checking, observing. A further layer is what deeper jobs pay.
Row = Mapping[str, Any]
CLOCK = "processor"
BUILDING, RUNNING, ANOTHER = "building and running, seconds", "running, seconds", "another gain, seconds"


FIXED = "a short job of small kernels is mostly what every job pays once: checks, results, dispatch"
PRODUCTS = f"two products alone are most of a layer from T = 512 on; {FIXED}"
COMPILED = "one scanned layer with its observables compiles for a second, which nothing here can take off"
EXPANDED = "an expansion a position, which the peer's fixed nodes don't need; its share falls as T grows"


class Target(NamedTuple):
    """How many times as long a contender should take, over all rows that this is asked of; why where it doesn't."""

    words: str
    factor: float
    contender: str
    part: str
    asked: Callable[[Row], bool]
    why: str


def _stack(name: str) -> Callable[[Row], bool]:
    return lambda row: row["stack"] == name


def _deep(row: Row) -> bool:
    return row["stack"] == "block" and (row["length"], row["depth"], row["dtype"]) == (128, 100, "float64")


def _long_mlp(row: Row) -> bool:
    return row["stack"] == "mlp" and (row["length"], row["dtype"]) == (512, "float64")


TARGETS = (
    Target("its repeated stack", 3, "repeated", RUNNING, _stack("block"), PRODUCTS),
    Target("its unrolled stack", 1.5, "unrolled", RUNNING, _stack("block"), PRODUCTS),
    Target("its repeated attention, ours structured", 10, "repeated", RUNNING, _stack("structured"), FIXED),
    Target("its unrolled attention, ours structured", 10, "unrolled", RUNNING, _stack("structured"), FIXED),
    Target("building and running an unrolled stack of 100 layers", 50, "unrolled", BUILDING, _deep, COMPILED),
    Target("building and running 100 layers of its serial MLP", 10, "unrolled", BUILDING, _long_mlp, COMPILED),
    Target("building and running 100 layers of its scanned MLP", 1, "repeated", BUILDING, _long_mlp, COMPILED),
    Target(
        "building and running such a stack for another gain, where ours is not built again",
        50,
        "unrolled",
        ANOTHER,
        _deep,
        FIXED,
    ),
    Target("its quadrature of tanh", 100, "repeated", RUNNING, _stack("tanh"), EXPANDED),
    Target("dks solves", 1, "dks", RUNNING, lambda row: "dks" in row[RUNNING], FIXED),
)


def ratios(row: Row) -> dict[str, dict[str, float]]:
    """How many times as long as `kernelprop` each contender takes, by processor time."""
    return {
        part: {name: seconds[CLOCK] / row[part]["kernelprop"][CLOCK] for name, seconds in row[part].items()}
        for part in (BUILDING, RUNNING, ANOTHER)
    }


def further_layers(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Milliseconds of a further layer, from the shallowest and the deepest job of each kind, as rows of their own."""
    kinds: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if not row["activation"]:
            kinds.setdefault((row["stack"], row["length"], row["dtype"]), []).append(row)
    found = []
    for (stack, length, dtype), several in kinds.items():
        milliseconds = {}
        for name in several[0][RUNNING]:
            points = sorted((row["depth"], row[RUNNING][name][CLOCK]) for row in several if name in row[RUNNING])
            (low, least), (high, most) = points[0], points[-1]
            if high > low:
                milliseconds[name] = 1e3 * (most - least) / (high - low)
        if "kernelprop" in milliseconds:
            ours = milliseconds["kernelprop"]
            over = {name: value / ours for name, value in milliseconds.items()}
            title = f"a further layer of {stack}, T = {length}, {dtype}"
            found.append({"stack": stack, "title": title, "milliseconds": milliseconds, "times as long": over})
    return found


def verdicts(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """One for every target and row that it is asked of.

    ``met`` says whether it is; ``floor``, where it was measured, what two products and nothing else would reach.
    """
    further = further_layers(rows)
    for target in TARGETS:
        for row in rows:
            if target.asked(row) and target.contender in row[target.part]:
                yield _judged(target, row["title"], ratios(row)[target.part])
        for row in further if target.part == RUNNING else ():
            if target.asked({RUNNING: row["milliseconds"], **row}) and target.contender in row["times as long"]:
                yield _judged(target, row["title"], row["times as long"])


def _judged(target: Target, title: str, over: Mapping[str, float]) -> dict[str, Any]:
    found = over[target.contender]
    told = {"target": target.words, "row": title, "times as long": found, "wanted": target.factor}
    if target.part == RUNNING and "two products" in over:
        told |= {"floor": found / over["two products"]}
    return told | ({"met": True} if found >= target.factor else {"met": False, "why": target.why})


def in_words(verdict: Mapping[str, Any]) -> str:
    """One line; a target that is missed comes with the reason."""
    found, wanted = verdict["times as long"], verdict["wanted"]
    line = f"{verdict['target']}: {found:.3g} times as long, {wanted:g} wanted ({verdict['row']})"
    if verdict["met"]:
        return f"met: {line}"
    floor = f"; two products alone: {verdict['floor']:.3g}" if "floor" in verdict else ""
    return f"MISSED: {line}{floor}; {verdict['why']}"
