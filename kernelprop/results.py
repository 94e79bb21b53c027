"""The types of answers: named numpy arrays with the description that made them, saved to one file."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelprop import storage, tables


@dataclass(frozen=True, eq=False)
class Estimate:
    """A Monte-Carlo number: never without its standard error.

    Attributes:
        mean: the mean over independent draws.
        stderr: its standard error, of the same shape.
        n: the number of draws.
    """

    mean: np.ndarray
    stderr: np.ndarray
    n: int

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and storage.equal(self, other)


@dataclass(frozen=True, eq=False, kw_only=True)
class Evolution:
    """Kernels through the depth of a network, and the numbers read off them.

    ``L`` layers, depths ``0…L``, ``T`` positions; ``…`` stands for the leading axes of a batch of input
    kernels. What is undefined is NaN, and flagged. Two evolutions are equal when all their arrays are (NaN
    equal to NaN) and so are their descriptions.

    Attributes:
        depth: the depths whose kernels are kept, ``(n,)``, int.
        kernels: the kernels at those depths, ``(…, n, T, T)``.
        diagonal: ``S_ii`` at every depth, ``(…, L+1, T)``.
        mean_correlation: mean of ``c_ij`` over pairs, ``(…, L+1)``.
        rank_residual: ``sqrt(tr(C S C) / tr S)``, ``(…, L+1)``.
        participation_ratio: ``(tr S)² / |S|_F²``, ``(…, L+1)``.
        undefined: whether some token has zero norm, bool ``(…, L+1)``.
        below_floor: whether the rank residual is below what rounding can tell, bool ``(…, L+1)``.
        eigenvalues: falling, ``(…, L+1, T)``; None unless asked for, as are the next three.
        effective_rank: ``exp(entropy of the normalised eigenvalues)``, ``(…, L+1)``.
        stable_rank: ``tr S / λ_max``, ``(…, L+1)``.
        eigenvalue_gap: ``λ_0 / λ_1``, ``(…, L+1)``; infinite where ``λ_1`` is 0 or rounding, in some chain.
        attention_entropy: mean entropy of the attention rows of every layer, ``(L,)``; or None.
        description: the network that the kernels went through, or None.
        notes: what a reader should know, such as a check that was left out.
        kernels_stderr: standard error of a kernel that is a Monte-Carlo mean; else None, as the others.
        diagonal_stderr: of ``diagonal``.
        mean_correlation_stderr: of ``mean_correlation``.
        rank_residual_stderr: of ``rank_residual``.
        participation_ratio_stderr: of ``participation_ratio``.
        eigenvalues_stderr: of ``eigenvalues``.
        effective_rank_stderr: of ``effective_rank``.
        stable_rank_stderr: of ``stable_rank``.
        eigenvalue_gap_stderr: of ``eigenvalue_gap``.
        last_sum: the diagonal of the last residual sum, in front of a final norm, ``(…, T)``; None without one.
    """

    depth: np.ndarray
    kernels: np.ndarray
    diagonal: np.ndarray
    mean_correlation: np.ndarray
    rank_residual: np.ndarray
    participation_ratio: np.ndarray
    undefined: np.ndarray
    below_floor: np.ndarray
    eigenvalues: np.ndarray | None = None
    effective_rank: np.ndarray | None = None
    stable_rank: np.ndarray | None = None
    eigenvalue_gap: np.ndarray | None = None
    attention_entropy: np.ndarray | None = None
    description: Any = None
    notes: tuple[str, ...] = ()
    kernels_stderr: np.ndarray | None = None
    diagonal_stderr: np.ndarray | None = None
    mean_correlation_stderr: np.ndarray | None = None
    rank_residual_stderr: np.ndarray | None = None
    participation_ratio_stderr: np.ndarray | None = None
    eigenvalues_stderr: np.ndarray | None = None
    effective_rank_stderr: np.ndarray | None = None
    stable_rank_stderr: np.ndarray | None = None
    eigenvalue_gap_stderr: np.ndarray | None = None
    last_sum: np.ndarray | None = None

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and storage.equal(self, other)

    @property
    def layers(self) -> int:
        """The number of layers ``L``."""
        return self.mean_correlation.shape[-1] - 1

    @property
    def length(self) -> int:
        """The number of positions ``T``."""
        return self.diagonal.shape[-1]

    def kernel(self, depth: int) -> np.ndarray:
        """Return the kernel at one of the kept depths, ``(…, T, T)``; a negative depth counts from the last.

        Raises:
            ValueError: for a depth whose kernel was not kept.
        """
        wanted = depth + self.layers + 1 if depth < 0 else depth
        where = np.flatnonzero(self.depth == wanted)
        if not len(where):
            kept = ", ".join(map(str, self.depth[:8])) + (", …" if len(self.depth) > 8 else "")
            raise ValueError(f"depth {depth}: its kernel was not kept; kept depths: {kept}")
        return self.kernels[..., int(where[0]), :, :]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one ``.npz`` file, whole or not at all; ``load`` gives an equal object back."""
        storage.save(self, path)

    def table(self, depths: Sequence[int] | None = None) -> list[dict[str, Any]]:
        """Return one row a depth (and kernel of a batch): the scalar observables, by name."""
        return tables.rows(self, depths)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table of all depths as CSV, numbers to full precision."""
        tables.write_csv(self, path)

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write every observable at every depth as strict JSON: NaN is ``null``, infinity ``"inf"``."""
        tables.write_json(self, path)


@dataclass(frozen=True, eq=False, kw_only=True)
class GradientNorms:
    """Expected squared Frobenius norms of the gradients of a loss, layer by layer, at one width.

    Those of matrices are ``d²`` times the width-free form, those of vectors and scalars ``d`` times. What the
    network lacks is None. Where ``query_exact`` is False, ``query`` is taken at first order, the values as independent
    of what the layers above do with them, and so are ``bias``, ``rescale``, ``mix_…`` and the residual weights, which
    can be several times off; all other rows are exact everywhere. Under random attention ``notes`` say what is.

    Attributes:
        query, key, value, output, mlp_in, mlp_out: of the weights, ``(L,)``; NaN queries where no softmax makes the
            attention, infinite ones where they overflow. Keys receive exactly 0 while the queries are zero.
        query_exact: where the query row is exact, bool ``(L,)``.
        query_rounding: the squared norm of the error that rounding makes in the query gradient, in units of the square
            of the unit rounding, ``(L,)``; see `queries_lost_to_rounding`.
        width: ``d``.
        mlp_gate: of a gated MLP's ``W_g``, ``(L,)``.
        mlp_bias_in, mlp_bias_out: of the MLP's biases, ``(L,)``.
        bias, rescale: of the attention's ``B`` and ``D``, summed over entries, ``(L,)``.
        mix_alpha, mix_beta, mix_gamma: of the weights of ``αI + βA``, or ``αI + D(βP − γP_0)``, ``(L,)``.
        attention_alpha, attention_beta, mlp_alpha, mlp_beta: of the residual weights, ``(L,)``; parallel branches
            share ``attention_alpha``.
        attention_norm, mlp_norm: of the gains of the norm at that sublayer, ``(L,)``; parallel branches share one.
        final_norm: of the final norm's gains, a scalar.
        input: of the embedded input ``X_0``, a scalar.
        weight_norms: expected squared norms of the weights themselves, ``(L,)`` by name.
        stderr: standard errors of rows that are sampled, ``(L,)`` by name; else None.
        cotangents: cotangent kernels at depths ``0…L``, ``(L+1, T, T)``, if asked for.
        description: the network, or None.
        notes: what a reader should know.
    """

    query: np.ndarray | None
    key: np.ndarray | None
    value: np.ndarray | None
    output: np.ndarray | None
    mlp_in: np.ndarray | None
    mlp_out: np.ndarray | None
    query_exact: np.ndarray
    width: int
    query_rounding: np.ndarray | None = None
    mlp_gate: np.ndarray | None = None
    mlp_bias_in: np.ndarray | None = None
    mlp_bias_out: np.ndarray | None = None
    bias: np.ndarray | None = None
    rescale: np.ndarray | None = None
    mix_alpha: np.ndarray | None = None
    mix_beta: np.ndarray | None = None
    mix_gamma: np.ndarray | None = None
    attention_alpha: np.ndarray | None = None
    attention_beta: np.ndarray | None = None
    mlp_alpha: np.ndarray | None = None
    mlp_beta: np.ndarray | None = None
    attention_norm: np.ndarray | None = None
    mlp_norm: np.ndarray | None = None
    final_norm: np.ndarray | None = None
    input: np.ndarray | None = None
    weight_norms: dict[str, np.ndarray] | None = None
    stderr: dict[str, np.ndarray] | None = None
    cotangents: np.ndarray | None = None
    description: Any = None
    notes: tuple[str, ...] = ()

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and storage.equal(self, other)

    def relative(self, name: str) -> np.ndarray:
        """Return gradient over weight, ``E‖∂loss/∂W‖² / E‖W‖²``, ``(L,)``; infinite for weights that start at 0.

        NaN where both vanish.

        Raises:
            ValueError: for a name without a weight matrix.
        """
        weights, gradient = (self.weight_norms or {}).get(name), getattr(self, name, None)
        if weights is None or gradient is None:
            known = ", ".join(self.weight_norms or {})
            raise ValueError(f"relative: {name!r} is no weight of this network; known: {known}")
        with np.errstate(divide="ignore", invalid="ignore"):
            return gradient / weights

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one ``.npz`` file, whole or not at all; ``load`` gives an equal object back."""
        storage.save(self, path)


def load(path: str | os.PathLike[str], functions: Mapping[str, Callable] | None = None) -> Any:
    """Read a saved result: an equal object, with the description that made it.

    Args:
        path: a file that ``.save`` wrote.
        functions: the user's own functions by name, for descriptions that hold some. Without them the arrays
            load all the same, and the description holds placeholders that raise when they are called.

    Raises:
        ValueError: one line naming the file, when it is missing, broken, or not one of these.
    """
    result = storage.load(path, functions)
    # Results of engines further right are known by what all results can do.
    if not (isinstance(result, Estimate) or hasattr(result, "save")):
        raise ValueError(f"{os.fspath(path)}: holds a {type(result).__name__}, which is no result")
    return result
