"""Which depths are kept: what is refused says all that it counts, in words for Python and for the command."""

import re

import pytest

from kernelprop import memory
from kernelprop.kept_depths import kept_depths


@pytest.mark.parametrize(
    ("available", "message"),
    [
        (6, "3 kernels of 8.0 KiB need 24.0 KiB, with 4 more to work in 56.0 KiB, and 48.0 KiB are available; "
            "keep at most 2 depths, or keep='last' (--keep last)"),
        (5, "40.0 KiB are available; keep at most 1 depth, or keep='last' (--keep last)"),
        (4, "32.0 KiB are available; not even keep='last' (--keep last) fits: shorten T"),
    ],
)  # fmt: skip
def test_a_refusal_counts_what_it_compares(monkeypatch, available, message):
    """Room for 6 kernels: 2 beside 4 to work in. What it says of itself fits, and one more does not."""
    monkeypatch.setattr(memory, "available_bytes", lambda: available * 32 * 32 * 8)
    with pytest.raises(ValueError, match=re.escape(message) + "$"):
        kept_depths("all", 2, 32, 8)
    if available > 4:
        assert len(kept_depths(list(range(available - 4)), 2, 32, 8).depths) == available - 4
        assert kept_depths("last", 2, 32, 8).last_only
