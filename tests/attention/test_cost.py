"""Structured attention never builds a T × T matrix: read off the jaxpr and off peak memory."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend import core

import kernelprop as kp
from kernelprop.attention.layer import sandwich, sandwich_transposed
from kernelprop.attention.sliding_window import sliding_window
from tests.attention.registry import STRUCTURED

LENGTH = 96
OPERATORS = {
    "identity": lambda: kp.identity(LENGTH),
    "uniform": lambda: kp.uniform(LENGTH),
    "causal uniform": lambda: kp.uniform(LENGTH, causal=True),
    "sliding window": lambda: sliding_window(LENGTH, 7),
    "espa": lambda: kp.espa(LENGTH, 3)[1],
    "espa from a given kernel": lambda: kp.espa(LENGTH, 3, gamma0=1.0)[1],
    "uspa": lambda: kp.uspa(LENGTH, 3)[1],
    "uspa from a given kernel": lambda: kp.uspa(LENGTH, 3, rho0=0.3)[1],
    "uspa symmetric": lambda: kp.uspa(LENGTH, 3, causal=False)[1],
    "mix of uniform": lambda: kp.mix(kp.uniform(LENGTH), 0.9, 0.1),
    "mix of causal uniform": lambda: kp.mix(kp.uniform(LENGTH, causal=True), 0.9, 0.1),
    "mix of espa": lambda: kp.mix(kp.espa(LENGTH, 3), 0.9, 0.1)[1],
    "blocks of espa": lambda: kp.block_diagonal(kp.espa(LENGTH // 2, 3), 2)[1],
}


def equations(jaxpr):
    """All equations of a jaxpr, those of its inner ones included."""
    for equation in jaxpr.eqns:
        yield equation
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                if isinstance(inner, core.ClosedJaxpr):
                    yield from equations(inner.jaxpr)
                elif isinstance(inner, core.Jaxpr):
                    yield from equations(inner)


def products_as_large_as_the_kernel(function, operand):
    """Matrix products that contract over all positions with a T × T matrix on both sides."""
    found = []
    for equation in equations(jax.make_jaxpr(function)(operand).jaxpr):
        if equation.primitive.name == "dot_general":
            shapes = [variable.aval.shape for variable in equation.invars]
            if all(np.prod(shape) >= LENGTH * LENGTH for shape in shapes):
                found.append(shapes)
    return found


def test_the_list_covers_the_structured_operators():
    assert set(OPERATORS) == set(STRUCTURED)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("map_of_kernels", [sandwich, sandwich_transposed])
def test_no_product_of_two_square_matrices(name, map_of_kernels):
    layer = OPERATORS[name]()
    assert not products_as_large_as_the_kernel(lambda s: map_of_kernels(layer, s), jnp.eye(LENGTH))


def test_the_reading_finds_the_products_of_dense_attention():
    layer = kp.dense(np.eye(LENGTH))
    assert len(products_as_large_as_the_kernel(lambda s: sandwich(layer, s), jnp.eye(LENGTH))) == 2


@pytest.mark.parametrize("name", ["causal uniform", "espa", "uspa", "mix of espa"])
def test_acting_on_one_column_needs_no_square_memory(name):
    """Peak memory of A x for one x of a million positions, where the matrix would take terabytes."""
    length = 2**20
    layer = {
        "causal uniform": lambda: kp.uniform(length, causal=True),
        "espa": lambda: kp.espa(length, 1, gamma0=1.0)[0],
        "uspa": lambda: kp.uspa(length, 1, rho0=0.3)[0],
        "mix of espa": lambda: kp.mix(kp.espa(length, 1, gamma0=1.0), 0.5, 0.5)[0],
    }[name]()
    with jax.enable_x64(True):
        x = jnp.ones((1, length))
        memory = jax.jit(lambda y: layer.act(y)).lower(x).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 64 * x.nbytes


def test_peak_memory_of_the_engine_is_a_few_kernels():
    from kernelprop.infinite import _scan

    length = 512
    model = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), kp.Transformer(kp.espa(length, 6)))
    slots = (jnp.zeros(7, jnp.int32), jnp.zeros(7, bool))
    kernel = jnp.eye(length)
    memory = _scan.lower(model, kernel, slots, 1, True, False).compile().memory_analysis()
    assert memory.temp_size_in_bytes <= 4 * kernel.nbytes


def test_the_cost_of_structured_attention_grows_with_the_square():
    """Floating-point operations from the compiler's own count: four times as many for twice the length."""

    def operations(layer, length):
        kernel = jax.ShapeDtypeStruct((length, length), jnp.float32)
        return jax.jit(lambda s: layer.act(s)).lower(kernel).compile().cost_analysis()["flops"]

    espa = [operations(kp.espa(n, 1, gamma0=1.0)[0], n) for n in (4096, 8192)]
    dense = [operations(kp.dense(np.eye(n)), n) for n in (256, 512)]
    assert espa[1] / espa[0] < 4.2
    assert dense[1] / dense[0] == pytest.approx(8, rel=0.02)
