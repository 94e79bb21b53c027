"""Scalar activation functions with the Gaussian expectations that carry a kernel through them."""

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
