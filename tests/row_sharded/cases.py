"""Networks whose kernels are followed on one device and by rows on four."""

import numpy as np

import kernelprop as kp

LENGTH = 32


def kernel():
    features = np.random.default_rng(0).normal(size=(LENGTH, 64))
    return features @ features.T / 64


def networks():
    matrices = np.random.default_rng(1).dirichlet(np.ones(LENGTH), size=(3, 2, LENGTH))
    usual = kp.Residual((1.0, 0.5), (1.0, 0.7))
    return {
        "espa": kp.Transformer(kp.espa(LENGTH, 5, gamma=0.05)),
        "pre": kp.Transformer(
            kp.uspa(LENGTH, 5),
            mlp=kp.MLP("gelu", bias_in=0.1, bias_out=0.2),
            norm=kp.Norm("pre", final=True),
            residual=usual,
        ),
        "post": kp.Transformer(
            kp.uniform(LENGTH, causal=True), 6, mlp=kp.MLP("relu", gain_in=2**0.5), norm="post", residual=usual
        ),
        "heads": kp.Transformer(kp.dense(matrices), mlp=kp.GatedMLP("silu"), gains=kp.Gains(value=1.1)),
        "repeated": kp.Transformer(kp.dense(matrices[0, 0]), 4, positions=0.5 * np.eye(LENGTH)),
        "parallel": kp.Transformer(
            kp.mix(kp.sliding_window(LENGTH, 4), 0.6, 0.8), 4, mlp=kp.MLP("tanh"), parallel=True, residual=usual
        ),
        "mixture": kp.Transformer(kp.mix(kp.dense(matrices[:, 0]), 0.6, 0.8)),
        "identity": kp.Transformer(kp.identity(LENGTH), 2, mlp=kp.MLP("erf")),
        "collapse": kp.Transformer(kp.uniform(LENGTH, causal=True), 80),
    }
