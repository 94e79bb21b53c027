"""The input kernel that the command's options describe."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from kernelprop.cli.options import option

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

PANEL = "Input kernel"
NAMED = ("identity", "equicorrelated", "exponential")


@dataclass(frozen=True, kw_only=True)
class KernelOptions:
    """What was asked for, None where nothing was."""

    kernel: Annotated[
        str | None,
        option(PANEL, "Matrix (T,T), or a batch; or identity (default), equicorrelated, exponential.", "FILE|NAME"),
    ] = None
    tokens: Annotated[
        str | None, option(PANEL, "Token ids (T,), or words with commas: repeats are correlated.", "FILE|WORDS")
    ] = None
    inputs: Annotated[str | None, option(PANEL, "Inputs X (T,d): the kernel is X X'/d.", "FILE")] = None
    correlation: Annotated[
        float | None, option(PANEL, "equicorrelated: of every pair; --tokens: of different ones (0).", "NUMBER")
    ] = None
    decay: Annotated[float | None, option(PANEL, "exponential: the rate g in exp(-g|i-j|).", "NUMBER")] = None


def kernel_from_data(options: KernelOptions) -> "np.ndarray | None":
    """Read the kernel off a file, tokens or inputs; None where a construction or nothing is named.

    Raises:
        ValueError: for files that can't be read, for what is no kernel, and for options that exclude each other.
    """
    from kernelprop import array_files

    _refuse_conflicts(options)
    if options.tokens is not None:
        return _of_tokens(options.tokens, options.correlation or 0.0)
    if options.inputs is not None:
        from kernelprop.kernels import from_inputs

        return _named(options.inputs, lambda: from_inputs(array_files.array(str(options.inputs))))
    if options.kernel is None or options.kernel in NAMED:
        return None
    if not array_files.is_file_name(options.kernel):
        raise ValueError(f"--kernel: {options.kernel!r} is no file, and no construction ({', '.join(NAMED)})")
    return certified(array_files.array(options.kernel), options.kernel)


def certified(array: "np.ndarray", name: str) -> "np.ndarray":
    """Check a kernel under the name that the user knows it by, so that nothing checks it again."""
    from kernelprop import door, trust

    return trust.certify(door.kernel(array, name).copy())


def named_kernel(options: KernelOptions, length: int) -> "np.ndarray":
    """Make the named kernel, the identity where none is, over ``length`` positions.

    Raises:
        ValueError: for a number that is missing or wrong.
    """
    from kernelprop import kernels

    if options.kernel == "equicorrelated":
        rho = _wanted(options.correlation, "correlation", "equicorrelated")
        return _as_option("--correlation", "rho", lambda: kernels.equicorrelated(length, rho))
    if options.kernel == "exponential":
        decay = _wanted(options.decay, "decay", "exponential")
        return _as_option("--decay", "gamma", lambda: kernels.exponential(length, decay))
    return kernels.identity(length)


def _of_tokens(text: str, correlation: float) -> "np.ndarray":
    from kernelprop import array_files
    from kernelprop.kernels import from_tokens

    words = [word.strip() for word in text.split(",")]
    ids = words if len(words) > 1 else array_files.array(text)
    return _named("tokens" if len(words) > 1 else text, lambda: from_tokens(ids, correlation))


def _named(name: str, make: "Callable[[], np.ndarray]") -> "np.ndarray":
    try:
        return make()
    except ValueError as error:
        message = str(error)
        raise ValueError(message if message.startswith(name) else f"{name}: {message}") from None


def _as_option(option: str, called: str, make: "Callable[[], np.ndarray]") -> "np.ndarray":
    """Name the option where the library names its own number."""
    try:
        return make()
    except ValueError as error:
        raise ValueError(f"{option}: {str(error).removeprefix(f'{called}: ')}") from None


def _refuse_conflicts(options: KernelOptions) -> None:
    given = [f"--{key}" for key in ("kernel", "tokens", "inputs") if getattr(options, key) is not None]
    if len(given) > 1:
        raise ValueError(f"{' and '.join(given)}: one input kernel is wanted")
    if options.correlation is not None and options.kernel != "equicorrelated" and options.tokens is None:
        raise ValueError("--correlation: belongs to --kernel equicorrelated and to --tokens")
    if options.decay is not None and options.kernel != "exponential":
        raise ValueError("--decay: belongs to --kernel exponential")


def _wanted(value: float | None, option: str, kernel: str) -> float:
    if value is None:
        raise ValueError(f"--{option}: a number is wanted for --kernel {kernel}")
    return value
