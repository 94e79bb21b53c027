"""The attention that the command's options name."""

from collections.abc import Callable, Mapping
from typing import Any

from kernelprop.cli.network_options import NetworkOptions

NAMED = ("espa", "uspa", "uniform", "identity", "sliding_window", "softmax")

# Which named constructions an option belongs to: given with another it would be ignored, so it is refused.
_BELONGS = {
    "gamma": ("espa",),
    "gamma0": ("espa",),
    "rho": ("uspa",),
    "rho0": ("uspa",),
    "window": ("sliding_window",),
    "causal": ("espa", "uspa", "uniform", "sliding_window", "softmax"),
    "temperature": ("softmax",),
    "heads": ("softmax",),
    "draws": ("softmax",),
    "seed": ("softmax",),
    "alibi": ("softmax",),
    "rotary": ("softmax",),
}


def attention_file(options: NetworkOptions) -> Any:
    """Read the attention's file, None where a construction or nothing is named.

    Raises:
        ValueError: for a file that can't be read, and a name that is neither.
    """
    from kernelprop import array_files

    name = options.attention
    _refuse_ignored(options)
    if name is None or name in NAMED:
        return None
    if not array_files.is_file_name(name):
        raise ValueError(f"--attention: {name!r} is no file, and no construction ({', '.join(NAMED)})")
    return array_files.array(name)


def attention_notes(matrices: Any) -> tuple[str, ...]:
    """What a reader should know about matrices that were given, if there are any."""
    from kernelprop.descriptions.given_rows import rows_notes

    return rows_notes(matrices)


def attention(options: NetworkOptions, matrices: Any, length: int | None) -> Any:
    """The operator: of given matrices or the named construction, without padding, with a share of the identity.

    Raises:
        ValueError: for wrong numbers, and for options that don't fit together.
    """
    from kernelprop.attention.mixture import mix

    operator = _given(options, matrices) if matrices is not None else _construction(options, length)
    if options.length not in (None, operator.length):
        raise ValueError(f"--length: {options.length} conflicts with attention over {operator.length} positions")
    if options.padding is not None and options.attention != "softmax":
        from kernelprop.attention.masking import masked

        operator = masked(operator, _without_padding(operator.length, options.padding))
    if options.alpha is None and options.beta is None:
        return operator
    if options.attention == "softmax":
        raise ValueError("--alpha, --beta: have no meaning for --attention softmax; a description's kind is shaped")
    alpha, beta = (
        default if weight is None else weight for weight, default in ((options.alpha, 0.0), (options.beta, 1.0))
    )
    return mix(operator, alpha, beta)


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
    makers: Mapping[str, Callable[..., Any]] = {
        "espa": lambda **numbers: kp.espa(length, options.depth, **numbers),
        "uspa": lambda **numbers: kp.uspa(length, options.depth, **numbers),
        "uniform": lambda **numbers: kp.uniform(length, **numbers),
        "identity": lambda: kp.identity(length),
        "sliding_window": lambda window=None, **numbers: _window(length, window, **numbers),
        "softmax": lambda **numbers: _softmax(length, options.padding, **numbers),
    }
    return makers[str(name)](**numbers)


def _window(length: int, window: int | None, **numbers: Any) -> Any:
    import kernelprop as kp

    if window is None:
        raise ValueError("--window: its width is wanted for --attention sliding_window")
    return kp.sliding_window(length, window, **numbers)


def _softmax(
    length: int,
    padding: int | None,
    *,
    temperature: float = 1.0,
    alibi: int | None = None,
    rotary: int | None = None,
    **numbers: Any,
) -> Any:
    import kernelprop as kp

    return kp.random_softmax(
        length,
        tau=temperature,
        bias=None if alibi is None else kp.alibi_bias(length, alibi),
        mask=None if padding is None else _without_padding(length, padding),
        rotary=None if rotary is None else kp.rotary_frequencies(rotary),
        **numbers,
    )


def _without_padding(length: int, padding: int) -> Any:
    import numpy as np

    if not 0 <= padding < length:
        raise ValueError(f"--padding: {padding} of {length} positions; at least one position is none")
    return np.arange(length) < length - padding


def _refuse_ignored(options: NetworkOptions) -> None:
    for key, names in _BELONGS.items():
        if getattr(options, key) is not None and options.attention not in names:
            chosen = f"--attention {options.attention}" if options.attention else "the example's attention"
            raise ValueError(f"--{key}: has no meaning for {chosen}; it belongs to {', '.join(names)}")
