"""The same training run written by hand in PyTorch: another network, another gradient, another optimiser."""

import math

import numpy as np
import pytest

import kernelprop as kp
from kernelprop.training import markov
from kernelprop.training.data.source import generator
from kernelprop.training.lab import Plan, set_up
from kernelprop.training.parameters import Start
from kernelprop.training.recipe import Recipe, Watch
from kernelprop.training.run import train
from kernelprop.training.trainables import GROUPS

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow

LENGTH, DEPTH, WIDTH, HEADS, VOCABULARY, SEED = 5, 2, 8, 2, 4, 9
DATA = markov(VOCABULARY, seed=1, concentration=0.3)
WATCH = Watch(points=2, batches=2, final=2, probe=2)


def description():
    return kp.Transformer(
        kp.mix(kp.espa(LENGTH, DEPTH, gamma=0.5), 0.8, 0.6),
        mlp=kp.MLP("gelu", 2),
        residual=kp.Residual((0.9, 0.5), (1.0, 0.7)),
        norm=kp.Norm("pre", "layer", 1e-5, final=True),
        gains=kp.Gains(temperature=1.7),
        positions=0.5 * np.eye(LENGTH),
    )


def starting_arrays(model, recipe):
    """The arrays in front of the first step, which are what the two have in common, as float64."""
    import jax

    with jax.enable_x64(True):
        plan = Plan(
            model, DATA, WIDTH, HEADS, None, "orthogonal", tuple(GROUPS), Start(0.7, "gaussian"), recipe, WATCH, SEED,
            np.dtype("float64"), "highest",
        )  # fmt: skip
        start = set_up(plan, None).initial()
        flat = {**start.weights, **start.numbers}
        flat |= {"embedding": start.embedding, "positions": start.positions, "readout": start.readout}
        return {name: torch.tensor(np.asarray(value), requires_grad=True) for name, value in flat.items()}


def by_hand(p, tokens):
    """Pre-LN, ``A = αI + β D softmax(τ q kᵀ/√d_k + B + mask)``, by the formulas of the theory."""
    x = p["embedding"][tokens] + p["positions"]
    mask = torch.tril(torch.ones(LENGTH, LENGTH, dtype=torch.bool))

    def norm(x):
        return torch.nn.functional.layer_norm(x, (WIDTH,), eps=1e-5)

    def heads(x):
        return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)

    for i in range(DEPTH):
        inside = norm(x)
        q, k, v = (heads(inside @ p[name][i]) for name in ("query", "key", "value"))
        logits = 1.7 * q @ k.transpose(-1, -2) / math.sqrt(WIDTH / HEADS) + p["bias"][i]
        attention = torch.softmax(logits.masked_fill(~mask, -torch.inf), -1)
        mixed = p["mix_alpha"][i] * v + p["mix_beta"][i] * (p["rescale"][i][:, None] * (attention @ v))
        x = p["attention_alpha"][i] * x + p["attention_beta"][i] * (mixed.transpose(1, 2).flatten(2) @ p["output"][i])
        hidden = torch.nn.functional.gelu(norm(x) @ p["mlp_in"][i])
        x = p["mlp_alpha"][i] * x + p["mlp_beta"][i] * (hidden @ p["mlp_out"][i])
    return norm(x) @ p["readout"]


def rate(recipe, step):
    if step < recipe.warmup:
        first = recipe.learning_rate / recipe.warmup
        return first + (recipe.learning_rate - first) * step / recipe.warmup
    share = (step - recipe.warmup) / (recipe.steps - recipe.warmup)
    low = recipe.floor * recipe.learning_rate
    return low + (recipe.learning_rate - low) * (1 + math.cos(math.pi * share)) / 2


def optimiser(recipe, p):
    matrices = ("query", "key", "value", "output", "mlp_in", "mlp_out", "embedding", "positions", "readout")
    groups = [
        {"params": [p[name] for name in p if name in matrices], "weight_decay": recipe.weight_decay},
        {"params": [p[name] for name in p if name not in matrices], "weight_decay": 0.0},
    ]
    if recipe.optimiser == "adamw":
        return torch.optim.AdamW(groups, betas=recipe.betas, eps=recipe.epsilon)
    return torch.optim.SGD([one | {"weight_decay": 0.0} for one in groups], lr=1.0, momentum=recipe.momentum)


def hand_run(recipe):
    p = starting_arrays(description(), recipe)
    step_maker = optimiser(recipe, p)
    losses, norms = [], {}
    for step in range(recipe.steps):
        batch = DATA.batch(LENGTH, recipe.batch, generator("training", SEED, step), "training")
        scores = by_hand(p, torch.tensor(batch.tokens, dtype=torch.long))
        loss = torch.nn.functional.cross_entropy(
            scores.flatten(0, 1), torch.tensor(batch.targets, dtype=torch.long).flatten()
        )
        step_maker.zero_grad()
        loss.backward()
        if step == 0:
            norms = {
                name: (value.grad**2).reshape(DEPTH, -1).sum(1) for name, value in p.items() if value.shape[0] == DEPTH
            }
        total = torch.sqrt(sum((value.grad**2).sum() for value in p.values()))
        for value in p.values():
            value.grad *= min(1.0, recipe.clip / float(total))
        for group in step_maker.param_groups:
            group["lr"] = rate(recipe, step)
        step_maker.step()
        losses.append(float(loss.detach()))
    return losses, norms, p


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(steps=6, batch=3, warmup=2, learning_rate=0.02, weight_decay=0.1, clip=0.2),
        Recipe(steps=6, batch=3, warmup=0, learning_rate=0.3, optimiser="sgd", clip=0.5),
    ],
    ids=["adamw", "sgd"],
)
def test_losses_gradients_and_trained_numbers_agree(recipe):
    losses, norms, p = hand_run(recipe)
    found = train(
        description(), DATA, width=WIDTH, heads=HEADS, trainable=tuple(GROUPS), embedding_scale=0.7,
        readout="gaussian", recipe=recipe, watch=WATCH, seed=SEED, dtype="float64",
    )  # fmt: skip
    np.testing.assert_allclose(found.loss, losses, rtol=1e-9)
    # The comparison can tell: every step moves the loss by far more than that.
    assert np.min(np.abs(np.diff(losses))) > 1e-5
    for name, right in norms.items():
        np.testing.assert_allclose(found.gradient_norms[name][0], right.numpy(), rtol=1e-7, atol=1e-18, err_msg=name)
    for name, values in found.scales.items():
        reached = p[name].detach().numpy()
        seen = np.tri(LENGTH, dtype=bool) if name == "bias" else slice(None)
        np.testing.assert_allclose(values[-1][..., seen], reached[..., seen], rtol=1e-7, atol=1e-9, err_msg=name)
