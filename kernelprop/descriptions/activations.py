"""Activations in a description: a name, or a table with a shaped one's method or its solved parameters."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from kernelprop.activations import ACTIVATIONS, Activation, LeakyReLU, activation, dks, tat
from kernelprop.activations.shaping.shaped import Affine, Shaped, ShapedLeakyReLU
from kernelprop.descriptions.entries import Place, number, read, shown, text, whole

AFFINE = ("input_scale", "input_shift", "output_shift", "output_scale")
LEAKY = ("negative_slope", "output_scale")


class Unsolved(NamedTuple):
    """An activation to be shaped for the network that it stands in, once that is known."""

    base: Activation
    method: str
    targets: Mapping[str, float]


def read_activation(value: Any, place: Place) -> Activation | Unsolved:
    """Read ``"gelu"``, ``{kind = "leaky_relu", negative_slope = 0.2}`` or a shaped activation.

    ``{kind = "dks", fn = "gelu"}`` is shaped for the network at hand, with ``depth`` for that many nonlinear layers
    in sequence; with the solved parameters nothing is solved.

    Raises:
        ValueError: naming what is unknown, missing or doesn't go together.
    """
    if isinstance(value, str):
        with place.blame():
            return activation(value)
    if not isinstance(value, Mapping):
        raise place.error(f"a name or a table is wanted, {shown(value)} was given")
    kind = text(value.get("kind", ""), place.at("kind"))
    if kind == "leaky_relu":
        slope = read(value, {"kind": text, "negative_slope": number}, place, ("negative_slope",))["negative_slope"]
        return LeakyReLU(slope)
    if kind not in _TARGETS:
        raise place.at("kind").error(f"{shown(kind)} is unknown; one of dks, tat, leaky_relu")
    return _shaped(kind, value, place)


_TARGETS = {"dks": ("zeta",), "tat": ("eta", "tau")}


def _shaped(method: str, table: Mapping, place: Place) -> Activation | Unsolved:
    solved = dict.fromkeys((*AFFINE, *LEAKY), number)
    targets = dict.fromkeys(_TARGETS[method], number)
    entries = {"kind": text, "fn": text, "depth": whole, **targets, **solved}
    found = read(table, entries, place, ("fn",))
    with place.blame(found, {"activation": ("fn",)}):
        base = activation(found["fn"])
        given = {key: found[key] for key in found if key in solved}
        asked = {key: found[key] for key in found if key in targets}
        if given:
            return _solved(method, base, given, [*asked, *(["depth"] if "depth" in found else [])])
        if "depth" not in found:
            return Unsolved(base, method, asked)
        return (dks if method == "dks" else tat)(base, found["depth"], **asked)


def _solved(method: str, base: Activation, given: dict[str, float], surplus: list[str]) -> Activation:
    if surplus:
        raise ValueError(
            f"{surplus[0]} and {next(iter(given))}: either a target is solved for, or parameters are given"
        )
    label = f"{method}({base.name})"
    if given.keys() == set(LEAKY) and method == "tat" and base.name in ("relu", "leaky_relu"):
        return ShapedLeakyReLU(given["negative_slope"], given["output_scale"], "tat(leaky_relu)")
    if given.keys() == set(AFFINE):
        return Shaped(Affine(base, **given), label)
    raise ValueError(f"the parameters are {', '.join(AFFINE)}, or of a leaky ReLU {', '.join(LEAKY)}")


def written_activation(phi: Activation) -> Any:
    """An activation as `read_activation` reads it back.

    Raises:
        ValueError: for a user's own function, which a text can't hold.
    """
    if isinstance(phi, ShapedLeakyReLU):
        return {"kind": "tat", "fn": "leaky_relu", **_plain(phi.parameters)}
    if isinstance(phi, Shaped):
        method = phi.label.partition("(")[0]
        return {"kind": method, "fn": _name(phi.affine.base), **_plain(phi.parameters)}
    if isinstance(phi, LeakyReLU) and float(phi.negative_slope) != float(LeakyReLU().negative_slope):
        return {"kind": "leaky_relu", "negative_slope": float(phi.negative_slope)}
    return _name(phi)


def _name(phi: Activation) -> str:
    known = ACTIVATIONS.get(phi.name)
    if known is None or known != phi:
        raise ValueError(f"activation: {phi.name} is a function of your own, which a description can't hold")
    return phi.name


def _plain(numbers: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in numbers.items()}
