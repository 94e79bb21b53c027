"""Small networks for the tests of gradients: four positions, peaked softmax matrices with rescaled rows."""

import numpy as np

import kernelprop as kp

T = 4
_RNG = np.random.default_rng(0)
_FEATURES = _RNG.normal(size=(T, 6))
KERNEL = _FEATURES @ _FEATURES.T / 6
LOSS = _RNG.normal(size=(T, 3))
COTANGENT = LOSS @ LOSS.T
SMOOTH = kp.Residual(attention=(0.6, 0.8), mlp=(0.6, 0.8))


def softmax_matrices(*shape, seed=1, spread=1.5):
    rng = np.random.default_rng(seed)
    p = np.exp(spread * rng.normal(size=(*shape, T, T)))
    p /= p.sum(-1, keepdims=True)
    return p * rng.uniform(0.6, 1.6, size=(*shape, T, 1))
