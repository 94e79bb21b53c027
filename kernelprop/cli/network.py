"""The network that the command's options describe."""

from typing import TYPE_CHECKING, Any

from kernelprop.cli.named_attention import attention, attention_file, attention_notes
from kernelprop.cli.network_options import NetworkOptions

if TYPE_CHECKING:
    from kernelprop.architecture import Transformer

__all__ = ["NetworkOptions", "attention_file", "attention_notes", "network"]

RESIDUALS = ("plain", "normalised", "depth_scaled")
POSITIONS = ("learned", "sinusoidal")
GAINS = ("query", "key", "value", "output")
SHAPING = ("zeta", "eta", "tau")
_OF_AN_MLP = (
    *("shaping", *SHAPING, "gated", "expansion", "gain_in", "gain_gate", "gain_out", "bias_in", "bias_out"),
    *("mlp_skip", "mlp_branch"),
)


def network(options: NetworkOptions, matrices: Any, length: int | None) -> "Transformer":
    """Build the network from given matrices, or from the named construction over ``length`` positions.

    Raises:
        ValueError: for wrong numbers, and for options that don't fit together.
    """
    from kernelprop.architecture import Transformer

    operator = attention(options, matrices, length)
    model = Transformer(
        operator,
        options.depth,
        mlp=_mlp(options),
        residual=_residual(options, operator.depth or options.depth or 1),
        norm=_norm(options),
        gains=_gains(options),
        positions=_positions(options, operator.length),
        parallel=bool(options.parallel),
    )
    return model if options.shaping is None else _shaped(options, model)


def _mlp(options: NetworkOptions) -> Any:
    if options.mlp is None:
        _refuse(options, _OF_AN_MLP, "there is no MLP; name its activation with --mlp")
        return None
    from kernelprop.layers.gated_mlp import GatedMLP
    from kernelprop.layers.mlp import MLP

    if options.shaping is None:
        _refuse(options, SHAPING, "belongs to --shaping")
    common = ("expansion", "gain_in", "gain_out")
    if options.gated:
        _refuse(options, ("bias_in", "bias_out"), "a gated MLP has no biases here")
        return GatedMLP(options.mlp, **_given(options, (*common, "gain_gate")))
    _refuse(options, ("gain_gate",), "belongs to --gated")
    return MLP(options.mlp, **_given(options, (*common, "bias_in", "bias_out")))


def _shaped(options: NetworkOptions, model: "Transformer") -> "Transformer":
    from kernelprop.network_shaping import shape_activation

    return shape_activation(model, str(options.shaping), **_given(options, SHAPING))


def _norm(options: NetworkOptions) -> Any:
    from kernelprop.layers.norm import Norm

    if options.norm is None:
        _refuse(options, ("norm_kind", "epsilon", "final_norm"), "belongs to --norm")
        return None
    return Norm(options.norm, options.norm_kind or "layer", options.epsilon or 0.0, bool(options.final_norm))


def _residual(options: NetworkOptions, depth: int) -> Any:
    """None without weights; an MLP's are the attention's where they are not given."""
    if options.residual is not None:
        return _named_residual(options, depth)
    if all(w is None for w in (options.skip, options.branch, options.mlp_skip, options.mlp_branch)):
        return None
    from kernelprop.layers.residual import Residual

    skip, branch = _or(options.skip, 1.0), _or(options.branch, 1.0)
    return Residual(attention=(skip, branch), mlp=(_or(options.mlp_skip, skip), _or(options.mlp_branch, branch)))


def _named_residual(options: NetworkOptions, depth: int) -> Any:
    from kernelprop.layers import residual

    name = options.residual
    if name not in RESIDUALS:
        raise ValueError(f"--residual: {name!r} is unknown; one of {', '.join(RESIDUALS)}")
    own = {"plain": (), "normalised": ("branch",), "depth_scaled": ("branch", "mlp_branch")}[name]
    others = tuple(key for key in ("skip", "branch", "mlp_skip", "mlp_branch") if key not in own)
    _refuse(options, others, f"has no meaning for --residual {name}")
    if name == "plain":
        return residual.plain()
    if name == "depth_scaled":
        branch = _or(options.branch, 1.0)
        return residual.depth_scaled(depth, branch, _or(options.mlp_branch, branch))
    if options.branch is None:
        raise ValueError("--branch: the branches' weight is wanted for --residual normalised")
    return residual.normalised(options.branch)


def _gains(options: NetworkOptions) -> Any:
    from kernelprop.layers.gains import Gains

    given = {name: getattr(options, f"{name}_gain") for name in GAINS}
    numbers = {name: value for name, value in given.items() if value is not None}
    return Gains(**numbers) if numbers else None


def _positions(options: NetworkOptions, length: int) -> Any:
    from kernelprop import kernels

    if options.positions not in (None, *POSITIONS):
        raise ValueError(f"--positions: {options.positions!r} is unknown; one of {', '.join(POSITIONS)}")
    if options.positions != "learned":
        _refuse(options, ("position_variance",), "belongs to --positions learned")
    if options.positions != "sinusoidal":
        _refuse(options, ("position_width",), "belongs to --positions sinusoidal")
    if options.positions is None:
        return None
    if options.positions == "learned":
        return kernels.positional_learned(length, _or(options.position_variance, 1.0))
    return kernels.positional_sinusoidal(length, 256 if options.position_width is None else options.position_width)


def _given(options: NetworkOptions, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(options, name) for name in names if getattr(options, name) is not None}


def _refuse(options: NetworkOptions, names: tuple[str, ...], why: str) -> None:
    """Refuse options that would be ignored."""
    for name in names:
        if getattr(options, name) is not None:
            raise ValueError(f"--{name.replace('_', '-')}: {why}")


def _or(value: float | None, default: float) -> float:
    return default if value is None else value
