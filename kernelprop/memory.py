"""How much memory there is, and whether what is asked for fits."""

import os
from pathlib import Path


def available_bytes() -> int | None:
    """Return the bytes that a computation on this machine may still take, None where that is unknown."""
    limits = [_free_on_linux(), _free_in_container()]
    known = [limit for limit in limits if limit is not None]
    return min(known) if known else _physical()


def in_words(size: float) -> str:
    """Write a number of bytes for people.

    >>> in_words(3 * 2**30)
    '3.0 GiB'
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def _free_on_linux() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    return int(fields["MemAvailable"].split()[0]) * 1024 if "MemAvailable" in fields else None


def _free_in_container() -> int | None:
    """The control group's limit less what it uses (page cache, which it can drop, counts as used)."""
    group = Path("/sys/fs/cgroup")
    try:
        limit, used = ((group / name).read_text().strip() for name in ("memory.max", "memory.current"))
    except OSError:
        return None
    return int(limit) - int(used) if limit.isdigit() and used.isdigit() else None


def _physical() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
