"""From a network and its input to findings, and changes that were tried with what became of them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from kernelprop.architecture import Transformer
from kernelprop.diagnosis.examination import Examination, examine
from kernelprop.diagnosis.remedies import REMEDIES, Case, Refusal, Remedy


@dataclass(frozen=True, eq=False, kw_only=True)
class Attempt:
    """One change, or several together, and what became of the network.

    Attributes:
        before: the network as it was.
        remedies: the names of what was changed.
        changes: in words, with numbers, one for each of them.
        after: the changed network; None where the change can't be made.
        refusal: why not.
        lasting: whether no other change makes it possible.
    """

    before: Examination
    remedies: tuple[str, ...]
    changes: tuple[str, ...] = ()
    after: Examination | None = None
    refusal: str | None = None
    lasting: bool = False

    @property
    def cures(self) -> bool:
        """Whether nothing ill is left."""
        return self.after is not None and not self.after.ills

    @property
    def helps(self) -> bool:
        """Whether something ill is gone, and nothing new has come."""
        return self.after is not None and self.after.ills < self.before.ills

    @property
    def name(self) -> str:
        """What was changed, in a few words."""
        return " and ".join(self.remedies)


@dataclass(frozen=True, eq=False, kw_only=True)
class Diagnosis:
    """A network as it is, and what was tried where something is ill.

    Attributes:
        before: the network as it is.
        attempts: the changes that were tried; none for a healthy network.
    """

    before: Examination
    attempts: tuple[Attempt, ...]

    @property
    def healthy(self) -> bool:
        """Whether nothing calls for a remedy."""
        return not self.before.ills

    @property
    def suggestions(self) -> tuple[Attempt, ...]:
        """The attempts that cure; where none does, those that help."""
        curing = tuple(attempt for attempt in self.attempts if attempt.cures)
        return curing or tuple(attempt for attempt in self.attempts if attempt.helps)


def diagnose(
    model: Transformer,
    kernel0: Any,
    cotangent: Any = None,
    keep: Sequence[int] = (),
    progress: Callable[[str], object] | None = None,
) -> Diagnosis:
    """Find what is wrong with a network at initialisation, and what would fix it.

    Collapse of the rank, growth or shrinkage of the diagonal, queries whose gradients are lost in bfloat16, value
    gradients far apart. Each remedy that is made for a finding (residual scale, signal-preserving attention, shaped
    activation, temperature) is applied and the changed network propagated again; pairs of them, then threes, where no
    single one is enough. Nothing is suggested that was not computed.

    Args:
        model: the network.
        kernel0: the input kernel, ``(T, T)``.
        cotangent: where the loss reads, as for `gradient_norms`.
        keep: the depths whose kernels are kept, beside the first and the last.
        progress: told in a few words what comes next.

    Raises:
        ValueError: as `propagate` and `gradient_norms` do.

    >>> import kernelprop as kp
    >>> found = diagnose(kp.Transformer(kp.espa(8, 4, gamma=0.05)), kp.kernels.identity(8))
    >>> found.healthy, found.suggestions
    (True, ())
    """
    tell = progress or _silent
    before = examine(model, kernel0, cotangent, keep, lambda stage: tell(f"the network as it is, {stage}"))
    case = Case(np.asarray(kernel0), cotangent, before)
    fitting = [remedy for remedy in REMEDIES if remedy.cures & before.ills]
    attempts: list[Attempt] = []
    for size in range(1, len(fitting) + 1):
        refused = {one.remedies[0] for one in attempts if one.lasting and len(one.remedies) == 1}
        for chosen in combinations(fitting, size):
            if size > 1 and _pointless(chosen, refused):
                continue
            tell(" and ".join(remedy.name for remedy in chosen))
            attempts.append(_attempt(model, chosen, case, keep))
        if any(attempt.cures for attempt in attempts):
            break
    return Diagnosis(before=before, attempts=tuple(attempts))


def _pointless(chosen: Sequence[Remedy], refused: set[str]) -> bool:
    """Together with what can't be made at all; or signal-preserving attention under skips that do its work."""
    names = {remedy.name for remedy in chosen}
    return bool(names & refused) or {"residual scale", "signal-preserving attention"} <= names


def _attempt(model: Transformer, chosen: Sequence[Remedy], case: Case, keep: Sequence[int]) -> Attempt:
    """Apply the remedies one after the other, in the mildest version that cures; else in the first."""
    names = tuple(remedy.name for remedy in chosen)
    best: Attempt | None = None
    try:
        for changed, words in _versions(model, chosen, case):
            after = examine(changed, case.kernel0, case.cotangent, keep)
            attempt = Attempt(before=case.before, remedies=names, changes=words, after=after)
            if attempt.cures:
                return attempt
            best = best if best is not None and best.helps >= attempt.helps else attempt
    except ValueError as error:
        if best is None:
            reason, lasting = " ".join(str(error).split()), isinstance(error, Refusal)
            return Attempt(before=case.before, remedies=names, refusal=reason, lasting=lasting)
    return best or Attempt(before=case.before, remedies=names, refusal="there is no version of it for this network")


def _versions(
    model: Transformer, chosen: Sequence[Remedy], case: Case
) -> Iterator[tuple[Transformer, tuple[str, ...]]]:
    first, *others = chosen
    for change in first.versions(model, case):
        if not others:
            yield change.model, (change.words,)
            continue
        for changed, words in _versions(change.model, others, case):
            yield changed, (change.words, *words)


def _silent(message: str) -> None:
    pass
