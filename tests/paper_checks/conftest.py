"""One quick run for all tests that need it."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from paper_checks import __main__ as command


class QuickRun(NamedTuple):
    """Its exit code, the folder that it wrote, and the record in it."""

    code: int
    folder: Path
    report: dict[str, Any]


@pytest.fixture(scope="session")
def quick_run(tmp_path_factory) -> QuickRun:
    """``python -m paper_checks --quick``, as a user starts it; a minute and a half."""
    folder = tmp_path_factory.mktemp("quick")
    code = command.main(["--quick", "--output", str(folder)])
    return QuickRun(code, folder, json.loads((folder / "report.json").read_text(encoding="utf-8")))
