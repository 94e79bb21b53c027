"""Random attention over five positions, in few structures so that few programs are compiled, and kernels for it."""

import jax
import jax.numpy as jnp
import numpy as np

from kernelprop.attention.masked_bias import MaskedBias, masked_softmax
from kernelprop.attention.random_softmax import random_softmax, rotary_frequencies, shaped_attention
from kernelprop.layers import random_attention, random_logits
from kernelprop.split_kernel import split

T = 5


def positive(length, seed=0):
    root = np.random.default_rng(seed).normal(size=(length, length + 2))
    return root @ root.T / length


PLAIN = positive(T)
NEAR = 0.9 + 0.1 * PLAIN / PLAIN.max()
FAR = PLAIN * np.outer([1, 30, 2, 1, 7], [1, 30, 2, 1, 7])
ZERO = PLAIN * np.outer([1, 1, 0, 1, 1], [1, 1, 0, 1, 1])
KERNELS = np.stack([PLAIN, NEAR, FAR, ZERO])

BIAS = np.random.default_rng(3).normal(size=(T, T))
PADDED = np.broadcast_to([True, True, False, True, True], (T, T))
SCALE = [1, 2, 0.5, 3, 1.0]
LAYERS = {
    "plain": random_softmax(T, draws=3),
    "causal": random_softmax(T, draws=3, causal=True, tau=1.5),
    "padding": random_softmax(T, draws=3, mask=PADDED),
    "bias": random_softmax(T, draws=3, bias=BIAS, query_gain=2.0, key_gain=0.7),
    "peaked": random_softmax(T, draws=3, bias=BIAS, tau=80.0),
    "biases": random_softmax(T, heads=2, bias=np.stack([BIAS, BIAS.T])),
    "rescaled": random_softmax(T, draws=3, rescale=SCALE, causal=True),
    "rotary": random_softmax(T, draws=3, rotary=rotary_frequencies(6), tau=2.0),
    "shaped": shaped_attention(T, 0.9, 0.7, 0.4, draws=3, causal=True, rescale=SCALE),
    "shaped around its centre": shaped_attention(T, draws=3, bias=BIAS),
}


@jax.jit
def _forward(layer, kernels, key):
    return jax.vmap(lambda kernel: random_attention.forward(layer, split(kernel), key).join())(kernels)


def forward(layer, kernels=KERNELS, seed=5):
    """The kernel map of a layer, of every kernel with the same draws."""
    with jax.enable_x64(True):
        return np.asarray(_forward(layer, kernels, jax.random.key(seed)))


@jax.jit
def _logits(layer, kernels, keys):
    def of_one(kernel):
        root = random_logits.factor(split(kernel))
        return jax.vmap(lambda key: sum(random_logits.logits(layer, root, key)))(keys)

    return jax.vmap(of_one)(kernels)


def logits(layer, kernels, draws, seed=5):
    """The draws of the logits that the map takes, ``(kernels, draws, T, T)``."""
    with jax.enable_x64(True):
        keys = jax.vmap(lambda n: jax.random.fold_in(jax.random.key(seed), n))(jnp.arange(draws))
        return np.asarray(_logits(layer, kernels, keys))


def matrices(layer, kernels=KERNELS):
    """The matrices that a layer's draws stand for, from their definition: ``(kernels, draws, T, T)``."""
    heads = layer.bias_count
    bias = np.broadcast_to(layer.bias, (heads, *layer.bias.shape[-2:]))[np.arange(layer.draws) % heads]
    softmax = masked_softmax(MaskedBias(bias + logits(layer, kernels, layer.draws), layer.mask))
    centre = masked_softmax(MaskedBias(bias, layer.mask))
    scale = np.ones(T) if layer.rescale is None else layer.rescale
    mixed = layer.softmax_weight * softmax - layer.centre_weight * centre
    return layer.identity_weight * np.eye(T) + scale[:, None] * mixed
