"""The network that the command's options describe."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernelprop import array_files

if TYPE_CHECKING:
    import numpy as np

    from kernelprop.architecture import Transformer

NAMED = ("espa", "uspa", "uniform", "identity")

# Which named constructions an option belongs to: given with another it would be ignored, so it is refused.
_BELONGS = {
    "gamma": ("espa",),
    "gamma0": ("espa",),
    "rho": ("uspa",),
    "rho0": ("uspa",),
    "causal": ("espa", "uspa", "uniform"),
}


@dataclass(frozen=True, kw_only=True)
class NetworkOptions:
    """What was asked for, None where nothing was."""

    attention: str | None = None
    length: int | None = None
    depth: int | None = None
    gamma: float | None = None
    gamma0: float | None = None
    rho: float | None = None
    rho0: float | None = None
    causal: bool | None = None
    alpha: float | None = None
    beta: float | None = None
    skip: float | None = None
    branch: float | None = None


def attention_file(options: NetworkOptions) -> "np.ndarray | None":
    """Read the attention's file, None where a construction or nothing is named.

    Raises:
        ValueError: for a file that can't be read, and a name that is neither.
    """
    name = options.attention
    _refuse_ignored(options)
    if name is None or name in NAMED:
        return None
    if not array_files.is_file_name(name):
        raise ValueError(f"--attention: {name!r} is no file, and no construction ({', '.join(NAMED)})")
    return array_files.array(name)


def network(options: NetworkOptions, matrices: Any, length: int | None) -> "Transformer":
    """Build the network from given matrices, or from the named construction over ``length`` positions.

    Raises:
        ValueError: for wrong numbers, and for options that don't fit together.
    """
    from kernelprop.architecture import Transformer
    from kernelprop.attention.mixture import mix
    from kernelprop.layers.residual import Residual

    operator = _given(options, matrices) if matrices is not None else _construction(options, length)
    if options.length not in (None, operator.length):
        raise ValueError(f"--length: {options.length} conflicts with attention over {operator.length} positions")
    if options.alpha is not None or options.beta is not None:
        operator = mix(operator, _or(options.alpha, 0.0), _or(options.beta, 1.0))
    residual = None
    if options.skip is not None or options.branch is not None:
        residual = Residual(attention=(_or(options.skip, 1.0), _or(options.branch, 1.0)))
    return Transformer(operator, options.depth, residual=residual)


def _given(options: NetworkOptions, matrices: Any) -> Any:
    from kernelprop.attention.dense import dense

    try:
        return dense(matrices)
    except ValueError as error:
        raise ValueError(f"{options.attention or 'example'}: {error}") from None


def _construction(options: NetworkOptions, length: int | None) -> Any:
    """Make the named operator, with the library's own defaults for what isn't given."""
    import kernelprop as kp

    name = options.attention
    if length is None:
        raise ValueError(f"--length: the number of positions is wanted for --attention {name}")
    given = {key: getattr(options, key) for key, names in _BELONGS.items() if name in names}
    numbers = {key: value for key, value in given.items() if value is not None}
    makers: Mapping[str, Any] = {
        "espa": lambda: kp.espa(length, options.depth, **numbers),
        "uspa": lambda: kp.uspa(length, options.depth, **numbers),
        "uniform": lambda: kp.uniform(length, **numbers),
        "identity": lambda: kp.identity(length),
    }
    return makers[str(name)]()


def _refuse_ignored(options: NetworkOptions) -> None:
    for key, names in _BELONGS.items():
        if getattr(options, key) is not None and options.attention not in names:
            chosen = f"--attention {options.attention}" if options.attention else "the example's attention"
            raise ValueError(f"--{key}: has no meaning for {chosen}; it belongs to {', '.join(names)}")


def _or(value: float | None, default: float) -> float:
    return default if value is None else value
