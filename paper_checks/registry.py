"""All checks, in the order of the report."""

import difflib

from paper_checks.check import Check
from paper_checks.dong2021 import CHECKS as DONG2021
from paper_checks.he2023 import CHECKS as HE2023
from paper_checks.noci2022 import CHECKS as NOCI2022
from paper_checks.symbolic import CHECKS as SYMBOLIC
from paper_checks.whole_networks import CHECKS as WHOLE_NETWORKS


def all_checks() -> tuple[Check, ...]:
    """Every check."""
    return HE2023 + NOCI2022 + DONG2021 + WHOLE_NETWORKS + SYMBOLIC


def chosen(only: list[str], quick: bool) -> list[Check]:
    """The checks of a run: those named, or whose source is named, else all (of the quick set).

    Raises:
        ValueError: for a name that is no check's.
    """
    checks = all_checks()
    for name in only:
        if not any(_named(check, name) for check in checks):
            close = difflib.get_close_matches(name, [check.id for check in checks], 3, 0.4)
            advice = f"did you mean {', '.join(close)}? " if close else ""
            raise ValueError(f"--only {name}: no such check; {advice}--list names all")
    if only:
        return [check for check in checks if any(_named(check, name) for name in only)]
    return [check for check in checks if check.quick or not quick]


def _named(check: Check, name: str) -> bool:
    return check.id == name or check.id.startswith(f"{name}.")
