"""What the rest of the suite takes for granted of JAX, and of importing the package."""

import importlib
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernelprop as kp


def test_jit_computes_what_eager_mode_computes():
    """The pattern of jax-ml/jax #39103, in which 0.10.2 has 3,612 of 20,001 rows wrong on the CPU."""
    generator = np.random.default_rng(0)
    matrix, rows = generator.normal(size=(3, 3)), generator.normal(size=(20_001, 3))
    expected = np.sum((rows @ matrix.T) ** 2, axis=1)

    def lengths(rows):
        return jax.vmap(lambda row: jnp.sum((matrix @ row) ** 2))(rows)

    with jax.enable_x64(True):
        for mode, function in (("eager mode", lengths), ("jit", jax.jit(lengths))):
            wrong = int(np.sum(~np.isclose(np.asarray(function(jnp.asarray(rows))), expected, rtol=1e-12)))
            assert wrong == 0, f"jax {jax.__version__}, {mode}: {wrong} of 20,001 rows are wrong; take another version"


def test_importing_the_package_neither_loads_jax_nor_sets_its_flags():
    program = (
        "import sys, kernelprop as kp\n"
        "assert not {'jax', 'numpy', 'scipy', 'matplotlib', 'typer', 'rich'} & set(sys.modules)\n"
        "kp.propagate(kp.Transformer(kp.uniform(2)), kp.kernels.identity(2))\n"
        "import jax\n"
        "assert not jax.config.jax_enable_x64\n"
        # scipy takes as long to load as everything else here; it is for those who solve.
        "assert not {'scipy', 'matplotlib', 'typer', 'rich'} & set(sys.modules)"
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


def test_no_public_name_is_hidden_by_a_module_of_that_name():
    """Importing ``kernelprop.name`` puts the module in the place of a function that loads late."""
    modules = {path.stem for path in Path(kp.__file__).parent.iterdir()}
    assert not set(kp._HOMES) & modules


def test_a_name_that_is_not_there_is_said_to_be_missing():
    with pytest.raises(AttributeError, match="'kernelprop' has no attribute 'espaa'"):
        kp.espaa  # noqa: B018
