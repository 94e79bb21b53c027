"""The page: template, style, script and data in one string, and the file."""

import json
import os
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from kernelprop.diagnosis.collapse import unless_rounding
from kernelprop.diagnosis.diagnose import Diagnosis
from kernelprop.files import write_whole
from kernelprop.report import drawings, sections, tables
from kernelprop.report.fixes import Fix, fixes
from kernelprop.report.heatmaps import heatmap_data
from kernelprop.results import Evolution
from kernelprop.tables import strict


def page(
    name: str,
    diagnosis: Diagnosis,
    kernel0: Any,
    version: str,
    remarks: Sequence[str] = (),
    described: Sequence[Fix] | None = None,
) -> str:
    """A diagnosis as HTML that needs no other file and no network.

    Args:
        name: what the network is called.
        diagnosis: what was found and tried; heat maps are drawn of the depths whose kernels it kept.
        kernel0: the input kernel, ``(T, T)``.
        version: of the program, for the foot of the page.
        remarks: what a reader should know about the description, a line each.
        described: the suggestions' descriptions, as `fixes` makes them; those that need no file by default.

    >>> import kernelprop as kp
    >>> from kernelprop.diagnosis.diagnose import diagnose
    >>> kernel = kp.kernels.identity(4)
    >>> text = page("mine", diagnose(kp.Transformer(kp.espa(4, 2, gamma=0.1)), kernel), kernel, "1.0")
    >>> text.startswith("<!doctype html>"), "://" in text
    (True, False)
    """
    before = diagnosis.before
    named = drawings.networks(diagnosis)
    pieces = {
        "name": escape(name),
        "headline": escape(sections.headline(diagnosis)),
        "state": "healthy" if diagnosis.healthy else "ill",
        "findings": sections.findings(diagnosis, remarks),
        "remedies": sections.remedies(diagnosis, fixes(diagnosis, kernel0) if described is None else described),
        "kernel_charts": drawings.kernel_charts(diagnosis),
        "options": sections.options([name for name, _ in named]),
        "gradient_charts": drawings.gradient_charts(diagnosis),
        "network": sections.network(before, kernel0),
        "depth_table": tables.depth_table(before.evolution),
        "gradient_table": tables.gradient_table(before.norms),
        "notes": sections.notes(before),
        "definitions": sections.definitions(),
        "version": escape(version),
        "layers": str(before.evolution.layers),
        "positions": str(before.evolution.length),
        "data": _safe_json([_heatmaps(name, examination.evolution) for name, examination in named]),
        "style": _part("page.css"),
        "script": _part("page.js"),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: pieces[match[1]], _part("page.html"))


def write_page(path: str | os.PathLike[str], text: str) -> None:
    """Write the page, whole or not at all.

    Raises:
        ValueError: naming the path, when it can't be written.
    """
    write_whole(path, lambda stream: stream.write(text.encode()))


def _heatmaps(name: str, evolution: Evolution) -> dict[str, Any]:
    kept = evolution.depth
    return {
        "name": name,
        **heatmap_data(evolution),
        "mean_correlation": strict([unless_rounding(c) for c in evolution.mean_correlation[kept].tolist()]),
        "rank_residual": strict(evolution.rank_residual[kept].tolist()),
        "diagonal": strict([[row.min(), row.max()] for row in evolution.diagonal[kept].astype(float)]),
    }


def _safe_json(content: Any) -> str:
    """JSON that can't end the script element that it stands in."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _part(name: str) -> str:
    return files("kernelprop.report").joinpath(name).read_text(encoding="utf-8")
