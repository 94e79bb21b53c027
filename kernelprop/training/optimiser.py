"""The optimiser of a recipe, put together from optax: a direction, and a rate that follows a schedule."""

from dataclasses import replace

import optax

from kernelprop.training.parameters import decayed
from kernelprop.training.recipe import Recipe


def learning_rates(recipe: Recipe) -> optax.Schedule:
    """Linear warm-up, then half a cosine.

    >>> rate = learning_rates(Recipe(steps=100, warmup=10, learning_rate=1.0))
    >>> [round(float(rate(step)), 6) for step in (0, 10, 55, 100)]
    [0.1, 1.0, 0.55, 0.1]
    """
    peak = recipe.learning_rate
    return optax.warmup_cosine_decay_schedule(
        init_value=peak / max(recipe.warmup, 1),
        peak_value=peak,
        warmup_steps=recipe.warmup,
        decay_steps=recipe.steps,
        end_value=recipe.floor * peak,
    )


def direction(recipe: Recipe) -> optax.GradientTransformation:
    """What the rate multiplies: the gradient clipped, then Adam's or momentum's direction, plus the decay."""
    clip = optax.identity() if recipe.clip is None else optax.clip_by_global_norm(recipe.clip)
    first, second = recipe.betas
    if recipe.optimiser == "adamw":
        inner = optax.scale_by_adam(first, second, recipe.epsilon)
    else:
        inner = optax.trace(recipe.momentum)
    return optax.chain(clip, inner, optax.add_decayed_weights(recipe.weight_decay, mask=decayed))


def without_schedule(recipe: Recipe) -> Recipe:
    """What a compiled step depends on, so that a sweep over rates or lengths compiles once."""
    return replace(recipe, steps=1, batch=1, learning_rate=1.0, warmup=0, floor=1.0)
