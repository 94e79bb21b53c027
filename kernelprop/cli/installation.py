"""What the command runs on, and whether that computes what it should."""

import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

PACKAGES = ("kernelprop", "jax", "jaxlib", "numpy", "scipy", "equinox", "jaxtyping", "matplotlib", "typer", "rich")
# Releases with wrong numbers on the CPU: jax-ml/jax #39103, #39264, #39257.
BAD_JAX = ("0.10.0", "0.10.1", "0.10.2", "0.11.0", "0.11.1")
ROWS = 20_001


@dataclass(frozen=True)
class Check:
    """One self-check: what was checked, whether it is as it should be, and what was seen or what to do."""

    name: str
    right: bool
    words: str


def versions() -> dict[str, str]:
    """The versions of Python and of what the package stands on."""
    return {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}}


def devices() -> list[str]:
    """What JAX computes on, the default first."""
    import jax

    return [f"{device.platform} {device.id}: {device.device_kind}" for device in jax.devices()]


def precision() -> dict[str, str]:
    """What numbers are computed in."""
    import jax

    x64: Any = jax.config.read("jax_enable_x64")
    return {
        "infinite width": "float64, whatever the process's flag says; float32 on request",
        "finite width": 'float32, products at precision "highest"; float64 on request',
        "jax_enable_x64 of this process": str(bool(x64)).lower(),
    }


def self_checks() -> list[Check]:
    """Run every check; one that fails in its own way is one that is not right."""
    checks: tuple[tuple[str, Callable[[], tuple[bool, str]]], ...] = (
        ("jax version", _version_is_sound),
        ("float64", _doubles_are_doubles),
        ("jit against eager mode", _jit_computes_what_eager_mode_computes),
        ("float32 products", _products_keep_their_digits),
        ("kernel recursion", _recursion_meets_its_closed_form),
    )
    return [_run(name, check) for name, check in checks]


def _run(name: str, check: Callable[[], tuple[bool, str]]) -> Check:
    try:
        return Check(name, *check())
    except Exception as error:  # whatever an installation that is broken does
        return Check(name, False, f"failed: {' '.join(f'{type(error).__name__}: {error}'.split())}")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _version_is_sound() -> tuple[bool, str]:
    found = _version("jax")
    if found in BAD_JAX:
        return False, f"jax {found} returns wrong numbers; install 'jax>=0.9.2,!=0.10.*,!=0.11.0,!=0.11.1'"
    return True, f"jax {found} is none of the releases known to be wrong"


def _doubles_are_doubles() -> tuple[bool, str]:
    import jax
    import jax.numpy as jnp
    import numpy as np

    with jax.enable_x64(True):
        seen = np.asarray(jax.jit(lambda one: one - 1e-12)(jnp.ones((), jnp.float64)))
    right = seen.dtype == np.float64 and abs((1 - seen) - 1e-12) < 1e-15
    return bool(
        right
    ), f"1 - 1e-12 is kept as {seen.dtype}" if right else "1 - 1e-12 is lost; see JAX's precision flags"


def _jit_computes_what_eager_mode_computes() -> tuple[bool, str]:
    """The pattern of jax-ml/jax #39103: a vmapped matrix-vector product and a sum behind it."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    generator = np.random.default_rng(0)
    matrix, rows = generator.normal(size=(3, 3)), generator.normal(size=(ROWS, 3))
    expected = np.sum((rows @ matrix.T) ** 2, axis=1)

    def lengths(rows: Any) -> Any:
        return jax.vmap(lambda row: jnp.sum((matrix @ row) ** 2))(rows)

    with jax.enable_x64(True):
        found = {
            mode: int(np.sum(~np.isclose(np.asarray(function(jnp.asarray(rows))), expected, rtol=1e-12)))
            for mode, function in (("eager mode", lengths), ("jit", jax.jit(lengths)))
        }
    wrong = {mode: number for mode, number in found.items() if number}
    if wrong:
        told = ", ".join(f"{number} of {ROWS} rows in {mode}" for mode, number in wrong.items())
        return False, f"wrong: {told}; install another release of jax"
    return True, f"{ROWS} rows agree in jit, eager mode and numpy"


def _products_keep_their_digits() -> tuple[bool, str]:
    """``1 + 2⁻¹²`` is lost in TF32 and bfloat16, which some devices multiply in unless told otherwise."""
    import jax
    import jax.numpy as jnp

    entries = jnp.full((1, 1024), 1 + 2.0**-12, jnp.float32)
    product = jax.jit(lambda x: jnp.matmul(x, x.T, precision="highest"))(entries)
    seen, wanted = float(product[0, 0]) / 1024, (1 + 2.0**-12) ** 2
    right = abs(seen / wanted - 1) < 2e-7
    return right, f"{seen:.9f}, right to float32" if right else f"{seen:.9f} instead of {wanted:.9f}: lowered precision"


def _recursion_meets_its_closed_form() -> tuple[bool, str]:
    """``Σ ← α²Σ + β²UΣU`` with ``U = 11ᵀ/T``: mean correlation ``(r − 1)/(T − 1 + r)``, ``r = (1 + β²/α²)^L``."""
    from kernelprop.architecture import Transformer
    from kernelprop.attention.uniform import uniform
    from kernelprop.infinite import propagate
    from kernelprop.kernels import identity
    from kernelprop.layers.residual import Residual

    length, depth = 8, 12
    model = Transformer(uniform(length), depth, residual=Residual(attention=(1.0, 0.5)))
    seen = float(propagate(model, identity(length), "last").mean_correlation[-1])
    ratio = 1.25**depth
    wanted = (ratio - 1) / (length - 1 + ratio)
    right = abs(seen / wanted - 1) < 1e-12
    return right, f"mean correlation {seen:.12f}" + ("" if right else f" instead of {wanted:.12f}")


def system() -> str:
    """The machine in a few words."""
    return f"{platform.system()} {platform.release()}, {platform.machine()}, {sys.implementation.name}"
