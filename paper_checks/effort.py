"""How much a run may draw."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """The quick or the full run; every check says how many draws each gets."""

    quick: bool

    def draws(self, quick: int, full: int) -> int:
        """The number of draws of this run."""
        return quick if self.quick else full
