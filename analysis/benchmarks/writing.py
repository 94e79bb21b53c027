"""Results written whole, with where and by what they were measured."""

import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jax

from kernelprop.files import write_whole

RESULTS = Path(__file__).parent / "results"


def environment() -> dict[str, Any]:
    """Where and with what the numbers were measured."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "jax": jax.__version__,
        "device": jax.devices()[0].device_kind,
        "cores": os.cpu_count(),
        "processor": platform.machine(),
        "load": os.getloadavg()[0],
    }


def write_result(path: Path, content: dict[str, Any]) -> Path:
    """Write strict JSON under a temporary name, then rename; return the path."""
    path.parent.mkdir(exist_ok=True)
    text = json.dumps(content, indent=1, allow_nan=False) + "\n"
    write_whole(path, lambda stream: stream.write(text.encode()))
    return path
