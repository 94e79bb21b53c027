"""Scalar activation functions with the Gaussian expectations that carry a kernel through them.

Names load when they are first used: a network of closed forms needs no quadrature and no solver.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelprop.activations.base import Activation
    from kernelprop.activations.duals import dual, dual_derivative
    from kernelprop.activations.rectifiers import LeakyReLU
    from kernelprop.activations.registry import ACTIVATIONS, activation
    from kernelprop.activations.shaping.methods import dks, dks_blocks, tat, tat_blocks

__all__ = [
    "ACTIVATIONS",
    "Activation",
    "LeakyReLU",
    "activation",
    "dks",
    "dks_blocks",
    "dual",
    "dual_derivative",
    "tat",
    "tat_blocks",
]

_HOMES = {
    "ACTIVATIONS": "registry",
    "Activation": "base",
    "LeakyReLU": "rectifiers",
    "activation": "registry",
    "dks": "shaping.methods",
    "dks_blocks": "shaping.methods",
    "dual": "duals",
    "dual_derivative": "duals",
    "tat": "shaping.methods",
    "tat_blocks": "shaping.methods",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"kernelprop.activations.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'kernelprop.activations' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
