"""What the contenders do: which stacks, how large, and who takes part."""

import sys
from typing import Any, NamedTuple

from analysis.benchmarks.peers.turns import Contender

OWN = ("kernelprop", "numpy", "scan loop", "two products")
# Variance-preserving under ReLU.
GAIN = 2**0.5
WIDTH = 32
POINTS = (-2.0, -1.0, -0.3, 0.4, 1.1, 2.5)


class Work(NamedTuple):
    """``depth`` layers of a stack over ``length`` positions; ``alike`` are the contenders whose kernels must agree.

    Stacks: ``attention`` is ``A Σ Aᵀ`` with one given ``A``; ``block`` adds a ReLU layer, which alone is ``mlp``;
    ``structured`` is attention
    only, E-SPA here and softmax attention in the peer, another map; ``tanh`` an MLP without a closed form; ``dks`` and
    ``tat`` a solve for ``depth`` nonlinear layers.
    """

    stack: str
    length: int
    depth: int
    dtype: str
    contenders: tuple[str, ...]
    alike: tuple[str, ...] = ()
    activation: str = ""

    def title(self) -> str:
        """What stands in front of a row."""
        if self.activation:
            return f"{self.stack}({self.activation}), {self.depth} layers"
        return f"{self.stack}, T = {self.length}, L = {self.depth}, {self.dtype}"

    def job(self) -> dict[str, Any]:
        """What the programs are told; the file of arrays comes on top."""
        told = {"stack": self.stack, "depth": self.depth, "dtype": self.dtype, "gain": GAIN, "width": WIDTH}
        return told | {"activation": self.activation, "points": POINTS}


def programs(peer: str) -> dict[str, Contender]:
    """Who serves each contender; ``peer`` is the peers' interpreter."""
    own = {name: Contender(sys.executable, "own_stacks") for name in OWN}
    stacks = {name: Contender(peer, "neural_tangents_stacks") for name in ("repeated", "unrolled")}
    return own | stacks | {"dks": Contender(peer, "dks_solves")}


def _dense(stack: str, length: int, depth: int, dtype: str, *peers: str) -> Work:
    plain = ("numpy", "scan loop")
    return Work(stack, length, depth, dtype, ("kernelprop", *plain, "two products", *peers), (*plain, *peers))


def _solves(*names: str) -> list[Work]:
    return [
        Work(method, 1, 36, "float64", ("kernelprop", "dks"), ("dks",), name)
        for method in ("dks", "tat")
        for name in names
    ]


def full() -> list[Work]:
    """Everything; unrolled blocks of 300 layers, and of 100 over many positions, take minutes to build and are not."""
    both, works = ("repeated", "unrolled"), []
    for dtype in ("float64", "float32"):
        for length, depth in ((128, 10), (128, 100), (512, 10), (1024, 4)):
            works.append(_dense("block", length, depth, dtype, *both))
        for length, depth in ((128, 300), (512, 40), (1024, 10)):
            works.append(_dense("block", length, depth, dtype, "repeated"))
        for length, depth in ((128, 100), (512, 10), (512, 40), (1024, 4)):
            works.append(Work("structured", length, depth, dtype, ("kernelprop", "repeated")))
        works += [_dense("attention", length, 10, dtype, *both) for length in (128, 512)]
        works.append(Work("structured", 128, 10, dtype, ("kernelprop", *both)))
        works += [_dense("mlp", length, 100, dtype, *both) for length in (128, 512)]
        for length, depth in ((128, 2), (128, 6), (512, 2)):
            works.append(Work("tanh", length, depth, dtype, ("kernelprop", "repeated"), ("repeated",)))
    return works + _solves("gelu", "gelu_tanh", "tanh", "softplus", "swish")


def quick() -> list[Work]:
    """A minute or so."""
    both = ("repeated", "unrolled")
    return [
        _dense("block", 128, 10, "float64", *both),
        _dense("block", 128, 100, "float64", "repeated"),
        _dense("attention", 128, 10, "float64", *both),
        *(Work("structured", 128, depth, "float64", ("kernelprop", *both)) for depth in (10, 40)),
        *(Work("tanh", 128, depth, "float64", ("kernelprop", "repeated"), ("repeated",)) for depth in (2, 4)),
        *_solves("gelu"),
    ]
