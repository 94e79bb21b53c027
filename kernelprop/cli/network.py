"""The network that the command's options describe."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernelprop import array_files

if TYPE_CHECKING:
    import numpy as np

    from kernelprop.architecture import Transformer

NAMED = ("espa", "uspa", "uniform", "identity", "softmax")

# Which named constructions an option belongs to: given with another it would be ignored, so it is refused.
_BELONGS = {
    "gamma": ("espa",),
    "gamma0": ("espa",),
    "rho": ("uspa",),
    "rho0": ("uspa",),
    "causal": ("espa", "uspa", "uniform", "softmax"),
    "temperature": ("softmax",),
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
    temperature: float | None = None
    alpha: float | None = None
    beta: float | None = None
    skip: float | None = None
    branch: float | None = None
    mlp: str | None = None
    expansion: float | None = None
    mlp_skip: float | None = None
    mlp_branch: float | None = None
    norm: str | None = None


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

    operator = _given(options, matrices) if matrices is not None else _construction(options, length)
    if options.length not in (None, operator.length):
        raise ValueError(f"--length: {options.length} conflicts with attention over {operator.length} positions")
    if options.alpha is not None or options.beta is not None:
        operator = mix(operator, _or(options.alpha, 0.0), _or(options.beta, 1.0))
    return Transformer(operator, options.depth, mlp=_mlp(options), norm=_norm(options), residual=_residual(options))


def _mlp(options: NetworkOptions) -> Any:
    if options.mlp is None:
        for name in ("expansion", "mlp_skip", "mlp_branch"):
            if getattr(options, name) is not None:
                raise ValueError(f"--{name.replace('_', '-')}: there is no MLP; name its activation with --mlp")
        return None
    from kernelprop.layers.mlp import MLP

    return MLP(options.mlp, _or(options.expansion, 4.0))


def _norm(options: NetworkOptions) -> Any:
    from kernelprop.layers.norm import Norm

    return None if options.norm is None else Norm(options.norm)


def _residual(options: NetworkOptions) -> Any:
    """None without weights; an MLP's are the attention's where they are not given."""
    weights = (options.skip, options.branch, options.mlp_skip, options.mlp_branch)
    if all(weight is None for weight in weights):
        return None
    from kernelprop.layers.residual import Residual

    skip, branch = _or(options.skip, 1.0), _or(options.branch, 1.0)
    return Residual(attention=(skip, branch), mlp=(_or(options.mlp_skip, skip), _or(options.mlp_branch, branch)))


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
        "softmax": lambda: kp.random_softmax(length, tau=_or(options.temperature, 1.0), causal=bool(options.causal)),
    }
    return makers[str(name)]()


def _refuse_ignored(options: NetworkOptions) -> None:
    for key, names in _BELONGS.items():
        if getattr(options, key) is not None and options.attention not in names:
            chosen = f"--attention {options.attention}" if options.attention else "the example's attention"
            raise ValueError(f"--{key}: has no meaning for {chosen}; it belongs to {', '.join(names)}")


def _or(value: float | None, default: float) -> float:
    return default if value is None else value
