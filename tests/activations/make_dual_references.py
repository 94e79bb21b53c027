"""Make ``dual_references.json``: E[phi(u) phi(v)] and E[phi'(u) phi'(v)] with mpmath.

Run as ``python tests/activations/make_dual_references.py NAME...``; about five minutes for a name without a closed
form, seconds for the others.

u = a x, v = b (c x + s y); Gauss-Legendre (22 digits) on intervals that end at multiples of the width of the
functions' features in u and in v, and at multiples of the Gaussian's width. Where the mean of phi over a Gaussian
is elementary (BLURRED) it replaces the inner integral: one dimension is left, and the formula checked is not used.
"""

import json
import sys
from itertools import pairwise
from pathlib import Path

import mpmath as mp

mp.mp.dps = 22
TABLE = Path(__file__).with_name("dual_references.json")
VARIANCES = [("1e-3", "1e-3"), ("1e-3", "1"), ("0.1", "7"), ("1", "1"), ("1", "1e3"), ("7", "7"), ("1e3", "1e3")]
CORRELATIONS = ["-1", "-0.999999", "-0.5", "0", "0.3", "0.9", "0.999999", "1"]
FEATURES = [mp.mpf(k) for k in (0, 1, 2, 4, 8, 16, 32)]
GAUSSIAN = [mp.mpf(k) * 2 for k in range(-5, 6)]


def sigmoid(x):
    return 1 / (1 + mp.exp(-x)) if x > 0 else 1 - 1 / (1 + mp.exp(x))


def tanh(x):
    t = mp.tanh(x)
    return t, 1 - t * t


def logistic(x):
    p = sigmoid(x)
    return p, p * sigmoid(-x)


def softplus(x):
    return mp.log1p(mp.exp(-abs(x))) + max(x, 0), sigmoid(x)


def silu(x):
    p = sigmoid(x)
    return x * p, p * (1 + x * sigmoid(-x))


def gelu_tanh(x):
    k = mp.sqrt(2 / mp.pi)
    t = mp.tanh(k * (x + mp.mpf("0.044715") * x**3))
    return x * (1 + t) / 2, (1 + t) / 2 + x * (1 - t * t) / 2 * k * (1 + 3 * mp.mpf("0.044715") * x * x)


def relu(x):
    return max(x, mp.mpf(0)), mp.mpf(x > 0)


def leaky_relu(x):
    slope = mp.mpf("0.01")
    return (x, mp.mpf(1)) if x > 0 else (slope * x, slope)


def erf(x):
    return mp.erf(x), 2 / mp.sqrt(mp.pi) * mp.exp(-x * x)


def gelu(x):
    return x * mp.ncdf(x), mp.ncdf(x) + x * mp.npdf(x)


def blurred_relu(m, t):
    return m * mp.ncdf(m / t) + t * mp.npdf(m / t), mp.ncdf(m / t)


def blurred_leaky_relu(m, t):
    slope = mp.mpf("0.01")
    value, rise = blurred_relu(m, t)
    return slope * m + (1 - slope) * value, slope + (1 - slope) * rise


def blurred_erf(m, t):
    width = mp.sqrt(1 + 2 * t * t)
    return mp.erf(m / width), 2 / mp.sqrt(mp.pi) / width * mp.exp(-((m / width) ** 2))


def blurred_gelu(m, t):
    width = mp.sqrt(1 + t * t)
    z = m / width
    value = m * mp.ncdf(z) + t * t / width * mp.npdf(z)
    return value, mp.ncdf(z) + z * mp.npdf(z) - t * t / width**2 * z * mp.npdf(z)


BLURRED = {
    "relu": (relu, blurred_relu),
    "leaky_relu": (leaky_relu, blurred_leaky_relu),
    "erf": (erf, blurred_erf),
    "gelu": (gelu, blurred_gelu),
    "sin": (lambda x: (mp.sin(x), mp.cos(x)), lambda m, t: [mp.exp(-t * t / 2) * f(m) for f in (mp.sin, mp.cos)]),
    "cos": (lambda x: (mp.cos(x), -mp.sin(x)), lambda m, t: [mp.exp(-t * t / 2) * f for f in (mp.cos(m), -mp.sin(m))]),
    "linear": (lambda x: (x, mp.mpf(1)), lambda m, t: (m, mp.mpf(1))),
    "square": (lambda x: (x * x, 2 * x), lambda m, t: (m * m + t * t, 2 * m)),
}
FUNCTIONS = {"tanh": tanh, "sigmoid": logistic, "softplus": softplus, "silu": silu, "gelu_tanh": gelu_tanh}


def legendre(order):
    polynomial = mp.taylor(lambda x: mp.legendre(order, x), 0, order)[::-1]
    nodes = sorted(mp.re(r) for r in mp.polyroots(polynomial, maxsteps=500, extraprec=200))
    derivative = [mp.diff(lambda x: mp.legendre(order, x), node) for node in nodes]
    return [(x, 2 / ((1 - x * x) * d * d)) for x, d in zip(nodes, derivative, strict=True)]


RULE = legendre(14)


def nodes(ends):
    ends = sorted({min(max(e, mp.mpf(-10)), mp.mpf(10)) for e in ends})
    kept = [ends[0]]
    for end in ends[1:]:
        if end - kept[-1] > mp.mpf("1e-9"):
            kept.append(end)
    for low, high in pairwise(kept):
        half = (high - low) / 2
        for point, weight in RULE:
            x = low + half * (1 + point)
            yield x, half * weight * mp.npdf(x)


def both_sides(scale, shift=0):
    return [(sign * k - shift) / scale for k in FEATURES for sign in (1, -1)]


def duals(function, q1, q2, c):
    a, b, s = mp.sqrt(q1), mp.sqrt(q2), mp.sqrt(1 - c * c)
    outer = GAUSSIAN + both_sides(a) + (both_sides(b * c) if c else [])
    value = derivative = mp.mpf(0)
    for x, weight in nodes(outer):
        f, slope = function(a * x)
        if s:
            centre = b * c * x
            inner_value = inner_slope = mp.mpf(0)
            for y, w in nodes(GAUSSIAN + both_sides(b * s, centre)):
                g, g_slope = function(centre + b * s * y)
                inner_value += w * g
                inner_slope += w * g_slope
        else:
            inner_value, inner_slope = function(b * c * x)
        value += weight * f * inner_value
        derivative += weight * slope * inner_slope
    return value, derivative


def blurred_duals(function, blurred, q1, q2, c):
    a, b, s = mp.sqrt(q1), mp.sqrt(q2), mp.sqrt(1 - c * c)
    kink = [sign * k * s / c for k in (1.5, 3, 5, 9) for sign in (1, -1)] if c else []
    waves = [mp.mpf(k) / 10 for k in range(-100, 101)]
    value = derivative = mp.mpf(0)
    for x, weight in nodes(waves + kink + both_sides(a) + (both_sides(b * c) if c else [])):
        f, slope = function(a * x)
        g, g_slope = blurred(b * c * x, b * s) if s else function(b * c * x)
        value += weight * f * g
        derivative += weight * slope * g_slope
    return value, derivative


def main(names):
    for name in names:
        rows = []
        for q1, q2 in VARIANCES:
            for c in CORRELATIONS:
                numbers = mp.mpf(q1), mp.mpf(q2), mp.mpf(c)
                if name in BLURRED:
                    pair = blurred_duals(*BLURRED[name], *numbers)
                else:
                    pair = duals(FUNCTIONS[name], *numbers)
                rows.append([float(q1), float(q2), float(c), *(float(mp.nstr(v, 17)) for v in pair)])
        table = json.loads(TABLE.read_text()) if TABLE.exists() else {}
        table[name] = rows
        TABLE.write_text(json.dumps(table, indent=0).replace(",\n", ", ").replace("], [", "],\n["))


if __name__ == "__main__":
    main(sys.argv[1:] or [*FUNCTIONS, *BLURRED])
