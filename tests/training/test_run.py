"""Training runs: against an independent network and optimiser, resumed, stopped, and refused."""

import numpy as np
import pytest

import kernelprop as kp
from kernelprop import storage
from kernelprop.training import copy_back, markov
from kernelprop.training.lab import Plan, set_up
from kernelprop.training.loop import Diverged
from kernelprop.training.metrics import look
from kernelprop.training.parameters import Start
from kernelprop.training.recipe import Recipe, Watch
from kernelprop.training.run import train
from kernelprop.training.trainables import GROUPS

LENGTH, DEPTH, WIDTH, HEADS = 6, 2, 8, 2
DATA = markov(5, seed=1)
WATCH = Watch(points=3, batches=2, final=2, probe=2)


def network(**parts):
    attention = kp.mix(kp.espa(LENGTH, DEPTH, gamma=0.5), 0.8, 0.6)
    return kp.Transformer(
        attention, mlp=kp.MLP("gelu", 2), residual=kp.Residual((1, 0.5), (1, 0.5)), norm=kp.Norm("pre", "rms"), **parts
    )


MODEL = network(positions=0.5 * np.eye(LENGTH))


def run(model=MODEL, data=DATA, **changes):
    options = {
        "width": WIDTH,
        "heads": HEADS,
        "recipe": Recipe(steps=7, batch=3, warmup=2, learning_rate=1e-2),
        "watch": WATCH,
        "trainable": tuple(GROUPS),
    }
    return train(model, data, **options | changes)


def lab(model, **changes):
    plan = {
        "model": model,
        "source": DATA,
        "width": WIDTH,
        "heads": HEADS,
        "head_width": None,
        "weights": "gaussian",
        "trainable": (),
        "start": Start(),
        "recipe": Recipe(steps=2, warmup=0),
        "watch": WATCH,
        "seed": 4,
        "dtype": np.dtype("float32"),
        "precision": "highest",
    }
    return set_up(Plan(**plan | changes), None)


@pytest.fixture(scope="module")
def uninterrupted():
    return run()


@pytest.mark.slow
def test_it_starts_at_the_uniform_loss_and_measures_what_it_says(uninterrupted):
    assert uninterrupted.loss[0] == pytest.approx(np.log(5), rel=1e-6)
    assert uninterrupted.done.tolist() == [0, 4, 7]
    assert uninterrupted.loss.shape == (7,)
    assert uninterrupted.token_cosine.shape == (3, DEPTH + 1)
    assert uninterrupted.kernels.shape == (3, LENGTH, LENGTH)
    assert uninterrupted.final.n == uninterrupted.validation.n == 2
    layered = ("query", "key", "value", "output", "mlp_in", "mlp_out", "bias", "rescale", "mix_alpha", "attention_beta")
    assert all(uninterrupted.gradient_norms[name].shape == (3, DEPTH) for name in layered)
    assert all(uninterrupted.gradient_norms[name].shape == (3,) for name in ("embedding", "positions", "readout"))
    for name in ("mix_alpha", "mix_beta", "attention_alpha", "attention_beta", "mlp_alpha", "mlp_beta"):
        moved = uninterrupted.scales[name]
        assert (moved[0] != moved[-1]).any(), name
    # A bias has no say where the mask forbids: it gets no gradient there.
    above = ~np.tri(LENGTH, dtype=bool)
    assert (uninterrupted.scales["bias"][-1][:, above] == 0).all()
    assert (uninterrupted.scales["bias"][-1] != uninterrupted.scales["bias"][0]).any()


@pytest.mark.slow
def test_an_interrupted_run_goes_on_to_the_same_numbers(uninterrupted, tmp_path):
    file = tmp_path / "run.npz"

    def interrupt(now):
        if now.done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(checkpoint=file, progress=interrupt)
    seen = []
    resumed = run(checkpoint=file, progress=lambda now: seen.append(now.done))
    assert seen == [5, 6, 7]  # the checkpoint holds the last state whose loss was known
    for name in ("loss", "done", "token_cosine", "kernels"):
        np.testing.assert_array_equal(getattr(resumed, name), getattr(uninterrupted, name))
    for name in ("gradient_norms", "scales"):
        for key, values in getattr(uninterrupted, name).items():
            np.testing.assert_array_equal(getattr(resumed, name)[key], values)
    assert resumed.final == uninterrupted.final
    again = run(checkpoint=file, progress=lambda now: seen.append(now.done))
    assert len(seen) == 3
    assert again.final == uninterrupted.final
    again.save(tmp_path / "result.npz")
    assert kp.load(tmp_path / "result.npz") == again
    for change in ({"seed": 1}, {"data": copy_back(5)}, {"trainable": ()}, {"width": 16}):
        with pytest.raises(ValueError, match=r"run.npz was made with another (seed|data|trainable|sizes)"):
            run(checkpoint=file, **change)


def test_a_foreign_checkpoint_is_refused(tmp_path):
    kp.propagate(kp.Transformer(kp.identity(2)), kp.kernels.identity(2)).save(tmp_path / "evolution.npz")
    (tmp_path / "text.npz").write_text("no archive")
    with pytest.raises(ValueError, match=r"evolution.npz is no checkpoint of a training run"):
        run(checkpoint=tmp_path / "evolution.npz")
    with pytest.raises(ValueError, match=r"text.npz: not a file of kernelprop, or a broken one"):
        run(checkpoint=tmp_path / "text.npz")


@pytest.mark.slow
def test_a_loss_that_is_not_finite_stops_the_run_and_keeps_the_last_good_state(tmp_path):
    file = tmp_path / "run.npz"
    recipe = Recipe(steps=9, batch=2, warmup=0, optimiser="sgd", learning_rate=1e15, clip=None)
    plain = kp.Transformer(kp.uniform(LENGTH, causal=True), DEPTH, kp.MLP("relu", 2))
    with pytest.raises(
        Diverged, match=r"the loss of step 3 is (nan|inf); layer 1 is the first .* after 1 steps"
    ) as told:
        run(plain, recipe=recipe, trainable=(), checkpoint=file)
    assert (told.value.step, told.value.layer) == (3, 1)
    assert "\n" not in str(told.value)
    stored = storage.load(file)
    assert stored["done"] == 1
    assert all(np.isfinite(array).all() for array in stored["arrays"])


@pytest.mark.slow
def test_it_is_the_network_that_simulate_samples():
    """Draw 0 of the same key: weights, embedded tokens and positions, read off the kernel behind the last layer."""
    import jax

    from kernelprop.finite import keys
    from kernelprop.finite.draw import experiment, one_draw
    from kernelprop.finite.inputs import network_input, position_factor
    from kernelprop.finite.network import network as finite
    from kernelprop.finite.simulation import as_numpy
    from kernelprop.kept_depths import kept_depths

    random = kp.Transformer(
        kp.random_softmax(LENGTH, causal=True), DEPTH, kp.MLP("gelu", 2), norm="pre", positions=0.5 * np.eye(LENGTH)
    )
    ids = np.array([3, 1, 4, 1, 0, 2])
    with jax.enable_x64(True):
        trained = lab(random, dtype=np.dtype("float64"))
        seen = look(trained.net, trained.initial(), ids[None])
        net = as_numpy(finite(random, WIDTH, heads=HEADS), np.dtype("float64"))
        fed = (network_input(random, None, ids, WIDTH), position_factor(random), None)
        kept = kept_depths("last", DEPTH, LENGTH, 8)
        one = experiment(net, fed, kept, gradients=False, keep_weights=False, dtype="float64")
        drawn = jax.jit(one_draw)(one, keys.draw_key(keys.root_key(4), 0))
    np.testing.assert_allclose(seen.kernel, drawn["kernels"][0], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(seen.token_cosine, drawn["mean_correlation"], rtol=1e-12)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trainable": ("bais",)}, r"trainable: 'bais' is unknown; use bias, rescale, mix, skip, branch"),
        ({"data": copy_back(5, lag=6)}, r"copy: a lag of 6 does not fit 6 positions"),
        ({"data": "book.txt"}, r"data: a source of kernelprop.training is wanted, 'book.txt' was given"),
        ({"heads": 3}, r"width: 8 does not divide into 3 heads"),
        ({"readout": "ones"}, r"readout: 'ones' is unknown; use zero or gaussian"),
        ({"embedding_scale": 0.0}, r"embedding_scale: 0 is not positive"),
        ({"dtype": "float16"}, r"dtype: float16 is not supported"),
        ({"precision": "low"}, r"precision: 'low' is unknown"),
        ({"seed": 2**32}, r"seed 4294967296 is outside"),
        ({"recipe": Recipe(batch=10**9)}, r"train: about .* are needed, and .* are available; lower the batch"),
    ],
)
def test_bad_input_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        run(**changes)


def test_what_no_softmax_makes_has_no_bias():
    signed = kp.Transformer(kp.dense([[1.0, 0.0], [-0.5, 1.0]]))
    with pytest.raises(ValueError, match=r"trainable: 'bias': no softmax makes this attention"):
        train(signed, DATA, width=4, trainable=("branch", "bias"))


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"steps": 0}, r"recipe: steps: 0 is too small"),
        ({"optimiser": "lion"}, r"recipe: optimiser 'lion' is unknown; use adamw or sgd"),
        ({"learning_rate": -1.0}, r"recipe: learning_rate is -1; it must be positive"),
        ({"betas": (0.9, 1.0)}, r"recipe: betas is 1; it lies between 0 and 1"),
        ({"clip": 0.0}, r"recipe: clip is 0; it must be positive"),
        ({"weight_decay": -0.1}, r"recipe: weight_decay is -0.1; it can't be negative"),
    ],
)
def test_recipes_are_checked(numbers, message):
    with pytest.raises(ValueError, match=message):
        Recipe(**numbers)


OTHERS = {
    "matrices that no softmax makes": lambda: (kp.Transformer(kp.dense([[1.0, 0.0], [-0.5, 1.0]]), DEPTH), ("branch",)),
    "parallel, gated, random": lambda: (
        kp.Transformer(
            kp.random_softmax(2, causal=True, rotary=[1.0]), DEPTH, kp.GatedMLP("silu", 2), norm="post", parallel=True
        ),
        ("skip", "branch", "mix"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_other_networks_train(name):
    model, trainable = OTHERS[name]()
    recipe = Recipe(steps=30, batch=8, warmup=0, learning_rate=2e-2)
    found = train(model, copy_back(3, lag=0), width=WIDTH, heads=HEADS, trainable=trainable, recipe=recipe, watch=WATCH)
    # To say the same token again takes the readout alone.
    assert found.loss[0] == pytest.approx(np.log(3), rel=1e-6)
    assert found.final.mean < 0.7 * np.log(3)
    moved = {key: bool(np.any(values[0] != values[-1])) for key, values in found.scales.items()}
    assert all(moved.values()), moved
    assert ("query" in found.gradient_norms) == (not found.notes)
