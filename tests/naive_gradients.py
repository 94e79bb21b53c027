"""The backward recursion in plain numpy loops, written from the formulas: ``O(T⁴)`` sums, one layer after the other."""

import math

import numpy as np


def gelu_duals(q, r):
    """``K`` and ``K̇`` of the exact GELU by two-dimensional Gauss-Hermite quadrature of each pair."""
    x, w = np.polynomial.hermite_e.hermegauss(80)
    w = w / w.sum()
    cdf = np.vectorize(lambda u: 0.5 * math.erfc(-u / math.sqrt(2)))
    out = np.zeros((2, len(q), len(q)))
    for i in range(len(q)):
        for j in range(len(q)):
            c = np.clip(r[i, j] / np.sqrt(q[i] * q[j]), -1, 1)
            u = np.sqrt(q[i]) * x[:, None] + 0 * x[None, :]
            v = np.sqrt(q[j]) * (c * x[:, None] + np.sqrt(1 - c * c) * x[None, :])
            weight = w[:, None] * w[None, :]
            out[0, i, j] = (weight * u * cdf(u) * v * cdf(v)).sum()
            slope = [cdf(z) + z * np.exp(-z * z / 2) / np.sqrt(2 * np.pi) for z in (u, v)]
            out[1, i, j] = (weight * slope[0] * slope[1]).sum()
    return out


def relu_duals(q, r):
    c = np.clip(r / np.sqrt(np.outer(q, q)), -1, 1)
    k = np.sqrt(np.outer(q, q)) * (np.sqrt(1 - c * c) + c * (np.pi - np.arccos(c))) / (2 * np.pi)
    return k, (np.pi - np.arccos(c)) / (2 * np.pi)


def score_sum(p, kernel):
    """``t_ii' = Σ_jj' P_ij P_i'j' Σ_jj' C_jj'``, ``C`` centred with row ``i`` in ``j`` and row ``i'`` in ``j'``."""
    length = len(p)
    t = np.zeros((length, length))
    for i in range(length):
        for k in range(length):
            for j in range(length):
                for m in range(length):
                    inner = kernel[j, m] - p[i] @ kernel[:, m] - kernel[j] @ p[k] + p[i] @ kernel @ p[k]
                    t[i, k] += p[i, j] * p[k, m] * kernel[j, m] * inner
    return t


def naive(
    matrices,
    kernel,
    cotangent,
    *,
    duals=None,
    expansion=1.0,
    attention=(0.0, 1.0),
    mlp=(0.0, 1.0),
    place=None,
    epsilon=0.0,
    final=False,
    gains=(1.0, 1.0, 1.0, 1.0),
    mlp_gains=(1.0, 1.0),
):
    """All rows, ``(L,)`` by name; ``matrices (L, H, T, T)``, ``gains`` key, value, output, temperature."""
    key, value, output, tau = gains
    scale = (value * output) ** 2
    tape = []

    def normed(s):
        root = np.sqrt(np.diag(s) + epsilon)
        return s / np.outer(root, root), root

    for heads in matrices:
        layer = {"x": kernel, "heads": heads}
        inside = normed(kernel)[0] if place == "pre" else kernel
        branch = scale * np.mean([a @ inside @ a.T for a in heads], axis=0)
        kernel = attention[0] ** 2 * kernel + attention[1] ** 2 * branch
        layer |= {"in1": inside, "branch1": branch, "sum1": kernel}
        kernel = normed(kernel)[0] if place == "post" else kernel
        if duals is not None:
            layer["z"] = kernel
            inside = normed(kernel)[0] if place == "pre" else kernel
            r = mlp_gains[0] ** 2 * inside
            layer["k"], layer["dk"] = duals(np.diag(r), r)
            kernel = mlp[0] ** 2 * kernel + mlp[1] ** 2 * mlp_gains[1] ** 2 * layer["k"]
            layer |= {"in2": inside, "sum2": kernel}
            kernel = normed(kernel)[0] if place == "post" else kernel
        tape.append(layer)
    g = cotangent
    if final:
        root = normed(kernel)[1]
        g = g / np.outer(root, root)
    rows = []
    for layer in reversed(tape):
        row = {}
        if duals is not None:
            if place == "post":
                root = normed(layer["sum2"])[1]
                g = g / np.outer(root, root)
            s2, s1 = mlp_gains[1] ** 2, mlp_gains[0] ** 2
            row["mlp_in"] = mlp[1] ** 2 * s2 * np.sum(layer["in2"] * g * layer["dk"])
            row["mlp_out"] = mlp[1] ** 2 * expansion * np.sum(layer["k"] * g)
            row["mlp_alpha"] = np.sum(g * layer["z"])
            row["mlp_beta"] = s2 * np.sum(g * layer["k"])
            back = mlp[1] ** 2 * s1 * s2 * g * layer["dk"]
            if place == "pre":
                row["mlp_norm"] = np.sum(back * layer["in2"])
                root = normed(layer["z"])[1]
                back = back / np.outer(root, root)
            g = mlp[0] ** 2 * g + back
        if place == "post":
            root = normed(layer["sum1"])[1]
            g = g / np.outer(root, root)
        inside, b2 = layer["in1"], attention[1] ** 2
        rows_of_heads = []
        for a in layer["heads"]:
            d = a.sum(1)
            p = a / d[:, None]
            query = np.sum(inside * b2 * g * np.outer(d, d) * score_sum(p, inside))
            bias = 0.0
            for i in range(len(p)):
                for j in range(len(p)):
                    apart = inside[j, j] - 2 * p[i] @ inside[:, j] + p[i] @ inside @ p[i]
                    bias += b2 * scale * g[i, i] * d[i] ** 2 * p[i, j] ** 2 * apart
            rescale = b2 * scale * np.sum(np.diag(g) * np.diag(p @ inside @ p.T))
            rows_of_heads.append([(tau * key) ** 2 * scale * query, bias, rescale])
        row["query"], row["bias"], row["rescale"] = np.mean(rows_of_heads, axis=0)
        pulled = b2 * np.mean([a.T @ g @ a for a in layer["heads"]], axis=0)
        attended = np.mean([a @ inside @ a.T for a in layer["heads"]], axis=0)
        row["value"] = output**2 * np.sum(pulled * inside)
        row["output"] = value**2 * b2 * np.sum(g * attended)
        row["attention_alpha"] = np.sum(g * layer["x"])
        row["attention_beta"] = np.sum(g * layer["branch1"])
        back = scale * pulled
        if place == "pre":
            row["attention_norm"] = np.sum(back * inside)
            root = normed(layer["x"])[1]
            back = back / np.outer(root, root)
        g = attention[0] ** 2 * g + back
        rows.append(row)
    result = {name: np.array([row[name] for row in rows[::-1]]) for name in rows[0]}
    return result | {"input": np.trace(g)}
