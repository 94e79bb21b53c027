"""What the rest of the suite takes for granted of JAX, and of importing the package."""

import importlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np

import kernelprop as kp


def test_jit_computes_what_eager_mode_computes():
    """The pattern of jax-ml/jax #39103, in which 0.10.2 has 3,612 of 20,001 rows wrong on the CPU."""
    with jax.enable_x64(True):
        generator = np.random.default_rng(0)
        matrix = jnp.asarray(generator.normal(size=(3, 3)))
        rows = jnp.asarray(generator.normal(size=(20_001, 3)))

        def form(row):
            return jnp.sum((matrix @ row) * row)

        eager = jax.vmap(form)(rows)
        compiled = jax.jit(jax.vmap(form))(rows)
        expected = np.einsum("ni,ij,nj->n", rows, matrix, rows)
        wrong = int(np.sum(~np.isclose(compiled, expected, rtol=1e-12, atol=1e-12)))
        assert wrong == 0, f"jax {jax.__version__} computes {wrong} of 20,001 rows wrong under jit: use another version"
        np.testing.assert_allclose(eager, expected, rtol=1e-12, atol=1e-12)


def test_importing_the_package_neither_loads_jax_nor_sets_its_flags():
    program = (
        "import sys, kernelprop as kp\n"
        "assert not {'jax', 'numpy', 'scipy', 'matplotlib', 'typer', 'rich'} & set(sys.modules)\n"
        "kp.propagate(kp.Transformer(kp.uniform(2)), kp.kernels.identity(2))\n"
        "import jax\n"
        "assert not jax.config.jax_enable_x64\n"
        "assert not {'matplotlib', 'typer', 'rich'} & set(sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_every_public_name_loads_and_no_other_is_promised():
    for name in kp.__all__:
        assert getattr(kp, name) is not None
    assert len(set(kp.__all__)) == len(kp.__all__)
    assert set(kp.__all__) == set(kp._HOMES) | set(kp._ROOMS)
    assert set(kp.__all__) <= set(dir(kp))
    for name, home in kp._HOMES.items():
        assert getattr(importlib.import_module(f"kernelprop.{home}"), name) is getattr(kp, name)


def test_a_name_that_is_not_there_is_said_to_be_missing():
    try:
        kp.espaa  # noqa: B018
    except AttributeError as error:
        assert "espaa" in str(error)
    else:
        raise AssertionError("kernelprop has no espaa")
