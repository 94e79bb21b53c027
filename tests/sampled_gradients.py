"""A small finite transformer, written from the definitions, whose gradients are measured by automatic differentiation.

It shares no code with the package: the description's numbers are read off, weights are drawn, the rest is a few lines.
"""

import jax
import jax.numpy as jnp
import numpy as np


def measured(model, kernel0, width, draws, *, factor, seed=0, batch=50, heads=1):
    """Mean and standard error of ``‖∂loss/∂W‖²`` over draws, by name, ``(L,)`` each; the loss is ``⟨factor R, X_L⟩``.

    ``factor (T, n)`` with ``factor factorᵀ = G_L``. The input is ``F Q √d`` with ``Q`` Haar orthogonal. ``heads`` is
    how many share an attention that has no heads of its own.
    """
    spec = _spec(model, heads)
    root = np.linalg.cholesky(np.asarray(kernel0) + 1e-15 * np.eye(len(kernel0)))
    rng = np.random.default_rng(seed)

    def one(params, r):
        grads = jax.grad(lambda p: jnp.sum(r * _network(p, spec, width)))(params)
        shared = {name: jnp.sum(grads.pop(name) ** 2) for name in ("final_norm", "input") if name in grads}
        return {n: jnp.sum(g**2, axis=tuple(range(1, g.ndim))) for n, g in grads.items()} | shared

    run = jax.jit(jax.vmap(one))

    def some():
        haar = np.linalg.qr(rng.normal(size=(batch, width, len(root))))[0].swapaxes(1, 2)
        # Rows of independent signs make the factor of a QR decomposition Haar.
        haar *= rng.choice([-1.0, 1.0], size=(batch, len(root), 1))
        inputs = np.float32(root @ haar * np.sqrt(width))
        r = factor @ rng.normal(size=(batch, np.shape(factor)[1], width))
        return run(_draw(rng, batch, spec, width) | {"input": inputs}, np.float32(r))

    values = jax.tree.map(lambda *v: np.concatenate(v).astype(float), *[some() for _ in range(draws // batch)])
    return {n: (v.mean(0), v.std(0, ddof=1) / np.sqrt(len(v))) for n, v in values.items()}


def _spec(model, heads):
    if hasattr(model.attention, "chains"):
        return _random_spec(model, heads)
    stack = hasattr(model.attention, "layers")
    layers = list(model.attention) if stack else [model.attention] * model.depth
    mixed = type(layers[0]).__name__ == "Mixture"
    forms = [(one.inner if mixed else one).softmax_form() for one in layers]
    log_p = np.stack([np.where(f.mask, f.bias, -1e9) for f in forms])
    rescale = np.stack([f.rescale for f in forms])
    if log_p.ndim == 3:
        log_p, rescale = (np.repeat(x[:, None], heads, axis=1) for x in (log_p, rescale))
    mix = np.stack([[one.alpha, one.beta] for one in layers]) if mixed else np.tile([0.0, 1.0], (model.depth, 1))
    mix = np.concatenate([mix, np.zeros((model.depth, 1))], axis=1)
    return {"model": model, "log_p": log_p, "rescale": rescale, "mix": mix, "tau": 1.0, "gains": (0.0, 1.0)}


def _random_spec(model, heads):
    layer, length = model.attention, model.attention.length
    base = np.broadcast_to(np.where(layer.mask, layer.bias, -1e9), (model.depth, heads, length, length))
    rescale = np.ones(length) if layer.rescale is None else layer.rescale
    return {
        "model": model,
        "log_p": base,
        "rescale": np.broadcast_to(rescale, (model.depth, heads, length)),
        "mix": np.tile([layer.identity_weight, layer.softmax_weight, layer.centre_weight], (model.depth, 1)),
        "tau": float(layer.tau),
        "gains": (float(layer.query_gain), float(layer.key_gain)),
    }


def _draw(rng, batch, spec, width):
    """Parameters of ``batch`` networks: a batch axis, then a layer axis where there is one."""
    model, depth, heads = spec["model"], spec["model"].depth, spec["log_p"].shape[1]
    gains, mlp = model.gains, model.mlp

    def given(values):
        return np.broadcast_to(np.float32(values), (batch, *np.shape(values)))

    def normal(deviation, *shape):
        scale = np.broadcast_to(np.float32(deviation), (depth,)).reshape(1, depth, *(1,) * len(shape))
        return scale * rng.standard_normal((batch, depth, *shape), np.float32)

    def gain(name, factor=1.0):
        return factor * (1.0 if gains is None else getattr(gains, name))

    small = width // heads
    params = {
        "query": normal(gain("query", spec["gains"][0]) / width**0.5, heads, width, small),
        "key": normal(gain("key", spec["gains"][1]) / width**0.5, heads, width, small),
        "value": normal(gain("value") / width**0.5, heads, width, small),
        "output": normal(gain("output") / width**0.5, heads, small, width),
        "bias": given(spec["log_p"]),
        "rescale": given(spec["rescale"]),
        "mix_alpha": given(spec["mix"][:, 0]),
        "mix_beta": given(spec["mix"][:, 1]),
        "mix_gamma": given(spec["mix"][:, 2]),
    }
    if mlp is not None:
        wide = int(mlp.expansion * width)
        params["mlp_in"] = normal(mlp.gain_in / width**0.5, width, wide)
        params["mlp_out"] = normal(mlp.gain_out / wide**0.5, wide, width)
        if hasattr(mlp, "gain_gate"):
            params["mlp_gate"] = normal(mlp.gain_gate / width**0.5, width, wide)
        else:
            params["mlp_bias_in"] = normal(np.sqrt(mlp.bias_in), wide)
            params["mlp_bias_out"] = normal(np.sqrt(mlp.bias_out), width)
    residual = model.residual
    pairs = ((0.0, 1.0),) * 2 if residual is None else (residual.attention, residual.mlp)
    for sublayer, pair in zip(("attention", "mlp"), pairs, strict=True):
        for name, value in zip(("alpha", "beta"), pair, strict=True):
            params[f"{sublayer}_{name}"] = given(np.broadcast_to(value, (depth,)))
    if model.norm is not None:
        for name in ("attention", "mlp"):
            params[f"{name}_norm"] = given(np.ones((depth, width)))
        params["final_norm"] = given(np.ones(width))
    return params


def _network(params, spec, width):
    model, x = spec["model"], params["input"]
    place = None if model.norm is None else model.norm.place
    for layer in range(model.depth):
        p = {n: v[layer] for n, v in params.items() if n not in ("input", "final_norm")}
        pre = (lambda y, g: _norm(model.norm, y, g)) if place == "pre" else (lambda y, g: y)
        post = (lambda y, g: _norm(model.norm, y, g)) if place == "post" else (lambda y, g: y)
        gains = {n: p.get(f"{n}_norm") for n in ("attention", "mlp")}
        inside = pre(x, gains["attention"])
        z = p["attention_alpha"] * x + p["attention_beta"] * _attention(p, inside, spec, layer)
        if model.parallel:
            x = post(z if model.mlp is None else z + p["mlp_beta"] * _mlp(p, inside, model.mlp), gains["attention"])
            continue
        x = post(z, gains["attention"])
        if model.mlp is not None:
            branch = _mlp(p, pre(x, gains["mlp"]), model.mlp)
            x = post(p["mlp_alpha"] * x + p["mlp_beta"] * branch, gains["mlp"])
    return _norm(model.norm, x, params["final_norm"]) if model.norm is not None and model.norm.final else x


def _attention(p, x, spec, layer):
    gains = spec["model"].gains
    tau = spec["tau"] * (1.0 if gains is None else float(gains.temperature[layer]))
    small = p["query"].shape[2]

    def head(query, key, value, output, bias, rescale):
        scores = tau * (x @ query) @ (x @ key).T / np.sqrt(small) + bias
        values = x @ value
        moved, rest = (rescale[:, None] * (jax.nn.softmax(s, axis=-1) @ values) for s in (scores, bias))
        return (p["mix_alpha"] * values + p["mix_beta"] * moved - p["mix_gamma"] * rest) @ output

    names = ("query", "key", "value", "output", "bias", "rescale")
    return jnp.sum(jax.vmap(head)(*(p[name] for name in names)), axis=0)


def _mlp(p, x, mlp):
    if "mlp_gate" in p:
        return (mlp.activation(x @ p["mlp_in"]) * (x @ p["mlp_gate"])) @ p["mlp_out"]
    return mlp.activation(x @ p["mlp_in"] + p["mlp_bias_in"][None]) @ p["mlp_out"] + p["mlp_bias_out"][None]


def _norm(norm, x, gain):
    if norm.kind == "layer":
        x = x - jnp.mean(x, -1, keepdims=True)
    return gain[None] * x / jnp.sqrt(jnp.mean(x**2, -1, keepdims=True) + norm.epsilon)
