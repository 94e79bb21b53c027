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

    def one(key):
        keys = jax.random.split(key, 4)
        haar = jnp.linalg.qr(jax.random.normal(keys[0], (width, len(root))))[0].T
        x = jnp.asarray(root, jnp.float32) @ haar * np.sqrt(width)
        params = _draw(keys[1], spec, width)
        r = jnp.asarray(factor, jnp.float32) @ jax.random.normal(keys[2], (np.shape(factor)[1], width))
        grads = jax.grad(lambda p: jnp.sum(r * _network(p, spec, width)))({**params, "input": x})
        shared = {name: jnp.sum(grads.pop(name) ** 2) for name in ("final_norm", "input") if name in grads}
        return {n: jnp.sum(g**2, axis=tuple(range(1, g.ndim))) for n, g in grads.items()} | shared

    run = jax.jit(jax.vmap(one))
    keys = jax.random.split(jax.random.key(seed), draws).reshape(-1, batch)
    values = jax.tree.map(lambda *v: np.concatenate(v).astype(float), *[run(k) for k in keys])
    return {n: (v.mean(0), v.std(0, ddof=1) / np.sqrt(draws)) for n, v in values.items()}


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
    return {"model": model, "log_p": log_p, "rescale": rescale, "mix": mix, "tau": 1.0, "gains": (0.0, 1.0)}


def _random_spec(model, heads):
    layer, length = model.attention, model.attention.length
    base = np.broadcast_to(np.where(layer.mask, layer.bias, -1e9), (model.depth, heads, length, length))
    rescale = np.ones(length) if layer.rescale is None else layer.rescale
    return {
        "model": model,
        "log_p": base,
        "rescale": np.broadcast_to(rescale, (model.depth, heads, length)),
        "mix": np.tile([0.0, 1.0], (model.depth, 1)),
        "tau": float(layer.tau),
        "gains": (float(layer.query_gain), float(layer.key_gain)),
    }


def _draw(key, spec, width):
    model, depth, heads = spec["model"], spec["model"].depth, spec["log_p"].shape[1]
    keys = iter(jax.random.split(key, 9))
    gains = model.gains

    def gain(name):
        value = np.ones(depth) if gains is None else getattr(gains, name)
        return jnp.asarray(value, jnp.float32).reshape(-1, 1, 1, 1)

    def normal(*shape):
        return jax.random.normal(next(keys), (depth, *shape))

    small = width // heads
    params = {
        "query": spec["gains"][0] * gain("query") * normal(heads, width, small) / np.sqrt(width),
        "key": spec["gains"][1] * gain("key") * normal(heads, width, small) / np.sqrt(width),
        "value": gain("value") * normal(heads, width, small) / np.sqrt(width),
        "output": gain("output") * normal(heads, small, width) / np.sqrt(width),
        "bias": jnp.asarray(spec["log_p"], jnp.float32),
        "rescale": jnp.asarray(spec["rescale"], jnp.float32),
        "mix_alpha": jnp.asarray(spec["mix"][:, 0], jnp.float32),
        "mix_beta": jnp.asarray(spec["mix"][:, 1], jnp.float32),
    }
    mlp = model.mlp
    if mlp is not None:
        wide = int(mlp.expansion * width)
        column = lambda v: jnp.asarray(v, jnp.float32).reshape(-1, 1, 1)  # noqa: E731
        params["mlp_in"] = column(mlp.gain_in) * normal(width, wide) / np.sqrt(width)
        params["mlp_out"] = column(mlp.gain_out) * normal(wide, width) / np.sqrt(wide)
        if hasattr(mlp, "gain_gate"):
            params["mlp_gate"] = column(mlp.gain_gate) * normal(width, wide) / np.sqrt(width)
        else:
            params["mlp_bias_in"] = jnp.sqrt(column(mlp.bias_in))[:, 0] * normal(wide)
            params["mlp_bias_out"] = jnp.sqrt(column(mlp.bias_out))[:, 0] * normal(width)
    residual = model.residual
    pairs = ((0.0, 1.0),) * 2 if residual is None else (residual.attention, residual.mlp)
    for sublayer, pair in zip(("attention", "mlp"), pairs, strict=True):
        for name, value in zip(("alpha", "beta"), pair, strict=True):
            params[f"{sublayer}_{name}"] = jnp.broadcast_to(jnp.asarray(value, jnp.float32), (depth,))
    if model.norm is not None:
        for name in ("attention", "mlp"):
            params[f"{name}_norm"] = jnp.ones((depth, width))
        params["final_norm"] = jnp.ones(width)
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
    heads, small = p["query"].shape[0], p["query"].shape[2]
    total = 0.0
    for h in range(heads):
        scores = tau * (x @ p["query"][h]) @ (x @ p["key"][h]).T / np.sqrt(small) + p["bias"][h]
        values = x @ p["value"][h]
        softmax = p["rescale"][h][:, None] * jax.nn.softmax(scores, axis=-1)
        mixed = p["mix_alpha"] * values + p["mix_beta"] * (softmax @ values)
        total = total + mixed @ p["output"][h]
    return total


def _mlp(p, x, mlp):
    if "mlp_gate" in p:
        return (mlp.activation(x @ p["mlp_in"]) * (x @ p["mlp_gate"])) @ p["mlp_out"]
    return mlp.activation(x @ p["mlp_in"] + p["mlp_bias_in"]) @ p["mlp_out"] + p["mlp_bias_out"]


def _norm(norm, x, gain):
    if norm.kind == "layer":
        x = x - jnp.mean(x, -1, keepdims=True)
    return gain[None] * x / jnp.sqrt(jnp.mean(x**2, -1, keepdims=True) + norm.epsilon)
