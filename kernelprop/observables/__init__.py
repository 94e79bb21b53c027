"""Numbers read off a kernel matrix, or off a batch ``(…, T, T)`` of them.

Every function is pure and runs in the precision of its argument: JAX arrays and tracers stay in JAX; anything
else is checked (shape, finiteness, symmetry, ``|c| <= 1``) and answered with numpy arrays. What is undefined
(the correlation of a zero token, a rank of the zero kernel) is NaN.

All are uncentred, on the eigenvalues of the kernel, unless the name says otherwise. ``DEFINITIONS`` has one
line for each: several different things are called "effective rank".
"""

from types import MappingProxyType

from kernelprop.observables.attention import attention_entropy, composite_norm, mean_attention_entropy
from kernelprop.observables.correlations import (
    correlation,
    diagonal,
    diagonal_maximum,
    diagonal_mean,
    diagonal_minimum,
    mean_correlation,
    mean_cosine,
    undefined_tokens,
)
from kernelprop.observables.ranks import (
    centred_effective_rank,
    centred_participation_ratio,
    centred_stable_rank,
    effective_rank,
    eigenvalue_gap,
    eigenvalue_ratio,
    eigenvalues,
    participation_ratio,
    singular_effective_rank,
    singular_participation_ratio,
    singular_sum_over_maximum,
    singular_values,
    stable_rank,
    threshold_rank,
)
from kernelprop.observables.residual import (
    centre,
    rank_residual,
    rank_residual_floor,
    rank_residual_from_parts,
)
from kernelprop.observables.spectrum import (
    count_above,
    entropy_rank,
    first_over_second,
    participation,
    second_over_first,
    sum_over_maximum,
)

DEFINITIONS = MappingProxyType(
    {
        "correlation": "c_ij = S_ij / sqrt(S_ii S_jj)",
        "mean_correlation": "mean of c_ij over the pairs i != j; also called mean cosine",
        "diagonal": "q_i = S_ii, the mean square of position i (mean, minimum and maximum over positions)",
        "rank_residual": "sqrt(tr(C S C) / tr S), C = I - 11'/T; 0 = all positions agree",
        "participation_ratio": "(tr S)^2 / |S|_F^2 = (sum of eigenvalues)^2 / sum of squares, uncentred",
        "eigenvalues": "eigenvalues of S, uncentred, falling",
        "effective_rank": "exp(entropy of the eigenvalues of S divided by their sum), uncentred",
        "stable_rank": "tr S / (largest eigenvalue of S), uncentred",
        "eigenvalue_gap": "(largest eigenvalue of S) / (second largest); inf where the second is 0 or rounding",
        "eigenvalue_ratio": "(second largest eigenvalue of S) / (largest)",
        "centred_participation_ratio": "participation ratio of C S C, C = I - 11'/T",
        "centred_effective_rank": "effective rank of C S C, C = I - 11'/T",
        "centred_stable_rank": "stable rank of C S C, C = I - 11'/T",
        "singular_effective_rank": "exp(entropy of the singular values of X over their sum), S = X X'/d",
        "singular_participation_ratio": "(sum of singular values of X)^2 / sum of their squares, S = X X'/d",
        "singular_sum_over_maximum": "(sum of the singular values of X) / (the largest), S = X X'/d",
        "threshold_rank": "number of singular values of X above 0.01 of the largest (or another threshold)",
        "attention_entropy": "-sum_j P_ij log P_ij in nats, P = A with its rows divided by their sums",
        "composite_norm": "sqrt(|R|_1 |R|_inf), largest column sum and largest row sum of |R_ij|",
    }
)

__all__ = [
    "DEFINITIONS",
    "attention_entropy",
    "centre",
    "centred_effective_rank",
    "centred_participation_ratio",
    "centred_stable_rank",
    "composite_norm",
    "correlation",
    "count_above",
    "diagonal",
    "diagonal_maximum",
    "diagonal_mean",
    "diagonal_minimum",
    "effective_rank",
    "eigenvalue_gap",
    "eigenvalue_ratio",
    "eigenvalues",
    "entropy_rank",
    "first_over_second",
    "mean_attention_entropy",
    "mean_correlation",
    "mean_cosine",
    "participation",
    "participation_ratio",
    "rank_residual",
    "rank_residual_floor",
    "rank_residual_from_parts",
    "second_over_first",
    "singular_effective_rank",
    "singular_participation_ratio",
    "singular_sum_over_maximum",
    "singular_values",
    "stable_rank",
    "sum_over_maximum",
    "threshold_rank",
    "undefined_tokens",
]
