"""A run as a page to read: REPORT.md and its pictures."""

import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernelprop.files import write_whole
from paper_checks import numerals
from paper_checks.run import Outcome

TITLES = {
    "he2023": "He et al. 2023, Deep Transformers without Shortcuts (arXiv 2302.10322)",
    "noci2022": "Noci et al. 2022, Signal Propagation in Transformers (arXiv 2206.03126)",
    "dong2021": "Dong et al. 2021, Attention is not all you need (arXiv 2103.03404)",
    "whole_networks": "Whole networks: gradient norms in closed form",
    "symbolic": "Identities proved symbolically",
}


def draw_plots(outcomes: Sequence[Outcome], folder: Path) -> None:
    """Draw every check that has curves, into the folder ``plots`` beside the report."""
    from paper_checks.plots import draw

    (folder / "plots").mkdir(exist_ok=True)
    for one in outcomes:
        if one.found.plot is not None:
            draw(one.found.plot, one.check.id, folder / "plots" / f"{one.check.id}.svg", one.found.draws)


def write(path: str | os.PathLike[str], top: dict[str, Any], outcomes: Sequence[Outcome]) -> None:
    """Write the page, whole or not at all."""
    text = "\n".join(_page(top, outcomes))
    write_whole(path, lambda stream: stream.write(text.encode()))


def _page(top: dict[str, Any], outcomes: Sequence[Outcome]) -> list[str]:
    lines = ["# The papers' statements, checked", "", *_summary(top), "", *_findings(outcomes), "", *_table(outcomes)]
    for source, those in itertools.groupby(outcomes, lambda one: one.check.id.split(".")[0]):
        lines += ["", f"## {TITLES.get(source, source)}"]
        for one in those:
            lines += ["", *_section(one)]
    return [*lines, ""]


def _summary(top: dict[str, Any]) -> list[str]:
    verdicts, versions = top["verdicts"], top["versions"]
    return [
        f"Written by `python -m paper_checks` ({top['mode']} run, {top['date']}, {top['seconds']:.0f} s on "
        f"{top['device']}; {', '.join(f'{name} {version}' for name, version in versions.items())}). Every number here "
        "comes from that run; `report.json` beside this page holds all of them.",
        "",
        f"**{verdicts['holds']} hold, {verdicts['fails']} fail, {verdicts['inconclusive']} are inconclusive.** A check "
        "holds when its prediction is met and its control, a nearby wrong prediction, is rejected by the same rule on "
        "the same data; it is inconclusive when the control is not rejected or the draws are too few to see a shift by "
        f"the stated resolution with power {top['power']:g}. All statistical comparisons together "
        f"({top['comparisons']} of at most {top['comparisons_allowed']}) fail by chance "
        f"with probability {top['family_failure']:g} at most.",
        "",
        "The papers' full texts were not at hand: statements are in this toolkit's notation, the papers are cited for "
        "the idea.",
    ]


def _findings(outcomes: Sequence[Outcome]) -> list[str]:
    found = [f"- `{one.check.id}`: {one.found.finding}" for one in outcomes if one.found.finding]
    return ["## Findings", "", *found] if found else []


def _table(outcomes: Sequence[Outcome]) -> list[str]:
    lines = [
        "## All checks",
        "",
        "Predicted, measured and off by: of the entry furthest off.",
        "",
        "| check | verdict | predicted | measured | off by | entries | control |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in outcomes:
        cells = (
            f"`{one.check.id}`",
            one.verdict.name,
            numerals.predicted(one),
            numerals.measured(one),
            numerals.deviation(one),
            str(len(one.found.measured)),
            "rejected" if one.verdict.control_rejected else "not rejected",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _section(one: Outcome) -> list[str]:
    check, found, verdict = one.check, one.found, one.verdict
    control = f"{verdict.control_score:.3g} times the tolerance off" if verdict.control_rejected else "not rejected"
    draws = f"n = {found.draws}, seed {found.seed}" if found.draws else "nothing is drawn"
    if not found.draws and found.seed is not None:
        draws = f"seed {found.seed}"
    rows = [
        f"### {check.id}",
        "",
        check.statement,
        "",
        f"    {check.formula}",
        "",
        f"- Source: {check.source}.",
        f"- Settings: {check.settings}.",
        f"- Measured by: {check.estimator}; {draws}; {one.seconds:.1f} s of processor time.",
        f"- Tolerance: {check.tolerance.in_words()}.",
        f"- Furthest off of {len(found.measured)}: {found.labels[verdict.worst]}, predicted {numerals.predicted(one)}, "
        f"measured {numerals.measured(one)}{numerals.interval(one)} ({numerals.deviation(one)}).",
        f"- Control: {check.control}: {control} ({found.labels[verdict.control_worst]}: "
        f"{found.control[verdict.control_worst]:.6g} against {found.measured[verdict.control_worst]:.6g}).",
        f"- Verdict: **{verdict.name}**{': ' + verdict.reason if verdict.reason else ''}.",
    ]
    if found.finding:
        rows.append(f"- Finding: {found.finding}")
    if found.plot is not None:
        rows += ["", f"![{check.id}](plots/{check.id}.png)"]
    return rows
