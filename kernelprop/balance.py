"""What a designer reads off gradient norms: balancing temperatures, residual weights, dead queries."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelprop import door
from kernelprop.architecture import Transformer
from kernelprop.gradient_report import without_softmax
from kernelprop.gradients import gradient_norms
from kernelprop.layers.residual import Residual
from kernelprop.results import GradientNorms

# Half the gap between 1 and the next number: what is smaller than this share of its neighbour is rounded away.
ROUNDING = {"float32": 2.0**-24, "bfloat16": 2.0**-8, "float16": 2.0**-11, "float64": 2.0**-53}
SMALLEST_WEIGHT = 1e-6
# Logarithms of the weights that are tried: each a sixth below the last one, and from a tenth on half of it.
TRIED = np.append(np.log(5 / 6) * np.arange(13), np.linspace(np.log(1 / 18), np.log(SMALLEST_WEIGHT), 17))
# Halvings of the range between two of them: the weight to a relative 1e-6.
STEPS = 20


@dataclass(frozen=True, eq=False)
class Balance:
    """The temperature at which query and value gradients balance.

    Attributes:
        temperature: of the whole network, where the norms summed over layers agree.
        by_layer: of each layer on its own, ``(L,)``; infinite where its queries have no gradient (or one that is all
            rounding, in float64), NaN where its values have none either.
        exact: whether the query row behind it is exact in every layer.
    """

    temperature: float
    by_layer: np.ndarray
    exact: bool


def balance_temperature(model: Transformer, kernel0: Any, cotangent: Any = None) -> Balance:
    """The ``τ`` at which ``E‖∂loss/∂W_Q‖² = E‖∂loss/∂W_V‖²``, summed over layers, and layer by layer.

    While the queries are zero the squared query norm grows as ``τ²`` and nothing else moves, so
    ``τ = sqrt(Σ value / Σ query)`` of the norms at ``τ = 1`` (Noci et al. 2022, section 3, find 8.5 in their setting).

    Raises:
        ValueError: for attention whose kernel itself depends on the temperature, where no query has a gradient, and
            where a layer has no queries or its temperature is 0 already.

    >>> import kernelprop as kp
    >>> model = kp.Transformer(kp.uniform(4), gains=kp.Gains())
    >>> balance = balance_temperature(model, kp.kernels.identity(4))
    >>> tempered = kp.Transformer(kp.uniform(4), gains=kp.Gains(temperature=balance.temperature))
    >>> norms = kp.gradient_norms(tempered, kp.kernels.identity(4))
    >>> bool(np.isclose(norms.query[0], norms.value[0]))
    True
    """
    if getattr(model.attention, "tau", None) is not None:
        raise ValueError("balance_temperature: random logits move the kernel too; sweep the attention's own tau")
    norms = gradient_norms(model, kernel0, cotangent)
    query, value = _weights(norms.query, "query"), _weights(norms.value, "value")
    now = np.ones(len(query)) if model.gains is None else np.asarray(model.gains.temperature)
    silent = ~np.isfinite(query) | (now == 0)
    without = without_softmax(model, silent)
    for layer in np.flatnonzero(silent)[:1].tolist():
        why = "no softmax makes its attention" if without[layer] else "its query gradient overflows"
        why = "its temperature is 0" if now[layer] == 0 else why
        raise ValueError(f"balance_temperature: layer {layer + 1}: {why}; there is nothing to balance")
    lost = np.isin(np.arange(len(query)) + 1, queries_lost_to_rounding(norms, "float64"))
    at_one = np.where(lost, 0.0, query / now**2)
    if not at_one.sum() > 0:
        raise ValueError("balance_temperature: no layer's queries have a gradient; no temperature makes one")
    with np.errstate(divide="ignore", invalid="ignore"):
        by_layer = np.sqrt(value / at_one)
    return Balance(float(np.sqrt(value.sum() / at_one.sum())), by_layer, bool(norms.query_exact.all()))


def residual_scale(model: Transformer, kernel0: Any, bound: float, cotangent: Any = None) -> float:
    """The largest branch weight ``β``, at most 1, whose network keeps its value gradients within a bound.

    With ``α = 1`` and ``β`` on both branches the first and the last layer's squared norms differ by a factor, which
    need not rise with ``β``. Weights are tried from 1 down, each a sixth below the last one and from a tenth on
    half of it, until the factor (or its inverse) is at most ``bound``; bisection then finds where above that it begins
    to be. Weights within the bound on a narrower range than these alone are not found.

    Raises:
        ValueError: for a bound below 1, or one that even ``β = 1e-6`` breaks, and for values without a gradient.

    >>> import kernelprop as kp
    >>> model = kp.Transformer(kp.uniform(8), 12, norm="pre")
    >>> 0 < residual_scale(model, kp.kernels.identity(8), bound=2.0) < 1
    True
    """
    bound = door.real_number(bound, "residual_scale: bound")
    if bound < 1:
        raise ValueError(f"residual_scale: bound is {bound:g}; a ratio of norms can't be kept below 1")

    def factor(beta: float) -> float:
        value = _weights(gradient_norms(with_branches(model, beta), kernel0, cotangent).value, "value")
        if not value.any():
            raise ValueError("residual_scale: no layer's values have a gradient")
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            ratio = value[0] / value[-1]
            # Two infinities are no ratio within a bound.
            return float(np.nan_to_num(np.maximum(ratio, 1 / ratio), nan=np.inf))

    place = next((n for n, weight in enumerate(TRIED) if factor(float(np.exp(weight))) <= bound), None)
    if place == 0:
        return 1.0
    if place is None:
        raise ValueError(f"residual_scale: even branches of weight {SMALLEST_WEIGHT:g} exceed the bound {bound:g}")
    low, high = TRIED[place], TRIED[place - 1]
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if factor(float(np.exp(middle))) <= bound else (low, middle)
    return float(np.exp(low))


def dead_queries(norms: GradientNorms, dtype: str = "float32") -> list[int]:
    """The layers, counted from 1, whose query gradient is below rounding beside the value gradient.

    A layer is dead where ``‖∂/∂W_Q‖ < u ‖∂/∂W_V‖``, ``u`` the unit rounding of the type (2⁻²⁴ for float32, 2⁻⁸ for
    bfloat16): added to anything of the value gradient's size it is lost. A temperature wakes such queries, unless they
    are `queries_lost_to_rounding` too.

    Raises:
        ValueError: for a type without a known rounding.

    >>> import kernelprop as kp
    >>> collapsed = kp.gradient_norms(kp.Transformer(kp.uniform(4), depth=2), kp.kernels.identity(4))
    >>> dead_queries(collapsed)
    [2]
    """
    query, value = _weights(norms.query, "query"), _weights(norms.value, "value")
    return _below(query, value, _unit_rounding(dtype, "dead_queries"))


def queries_lost_to_rounding(norms: GradientNorms, dtype: str = "float32") -> list[int]:
    """The layers, counted from 1, whose query gradient is smaller than the error that rounding makes in it.

    A score's gradient is ``P_ij (s_j − Σ_k P_ik s_k)``, ``s_j = ⟨g_i, v_j⟩``. Near collapse the difference is far
    smaller than the sum, whose rounding ``u`` moves all scores of row ``i`` together, and the queries by ``u`` times
    their mean key: in all ``u² τ² σ_K² d² Σ_i G_ii Σ_ii D_i² (PΣPᵀ)_ii²`` (`GradientNorms.query_rounding`). Both grow
    alike with the input, the gains and the temperature, so that none of these brings the gradient back. The error is
    that of a softmax differentiated in the type; a fused kernel that rounds its outputs alone makes half of it.

    Raises:
        ValueError: for a type without a known rounding.

    >>> import kernelprop as kp
    >>> collapsed = kp.gradient_norms(kp.Transformer(kp.uniform(4), depth=2), kp.kernels.identity(4))
    >>> queries_lost_to_rounding(collapsed)
    [2]
    """
    query, rounding = _weights(norms.query, "query"), _weights(norms.query_rounding, "query_rounding")
    return _below(query, rounding, _unit_rounding(dtype, "queries_lost_to_rounding"))


def _below(squares: np.ndarray, others: np.ndarray, share: float) -> list[int]:
    return [int(index) + 1 for index in np.flatnonzero(np.sqrt(squares) < share * np.sqrt(others))]


def _unit_rounding(dtype: str, who: str) -> float:
    if dtype not in ROUNDING:
        raise ValueError(f"{who}: dtype {dtype!r} is unknown; use {', '.join(ROUNDING)}")
    return ROUNDING[dtype]


def with_branches(model: Transformer, beta: float) -> Transformer:
    """The same network with skips of weight 1 and branches of weight ``β``."""
    return model.replaced(residual=Residual(attention=(1.0, beta), mlp=(1.0, beta)))


def _weights(values: np.ndarray | None, name: str) -> np.ndarray:
    if values is None:
        raise ValueError(f"{name}: this network has no such gradients")
    return np.asarray(values, np.float64)
