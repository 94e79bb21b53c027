"""The page's sections as HTML."""

from collections.abc import Sequence
from html import escape

from kernelprop.descriptions.in_words import describe
from kernelprop.diagnosis.collapse import CRITERION
from kernelprop.diagnosis.diagnose import Attempt, Diagnosis
from kernelprop.diagnosis.examination import Examination
from kernelprop.observables import DEFINITIONS
from kernelprop.report import tables
from kernelprop.report.fixes import Fix, fix_of

SHOWN = ("mean_correlation", "rank_residual", "participation_ratio")


def headline(diagnosis: Diagnosis) -> str:
    """The verdict in a sentence of plain text."""
    ills = [finding.words for finding in diagnosis.before.findings if finding.ill]
    if not ills:
        return "It keeps its signal: nothing found that calls for a remedy."
    return "One problem found." if len(ills) == 1 else f"{len(ills)} problems found."


def findings(diagnosis: Diagnosis, remarks: Sequence[str] = ()) -> str:
    """What was found, ills first, and remarks on the description; for a healthy network its numbers too."""
    found = sorted(diagnosis.before.findings, key=lambda finding: not finding.ill)
    items = "".join(
        f'<li class="{"ill" if finding.ill else "remark"}"><strong>{"Problem" if finding.ill else "Note"}:</strong> '
        f"{escape(sentence(finding.words))}</li>"
        for finding in found
    ) + "".join(f'<li class="remark"><strong>Note:</strong> {escape(remark)}</li>' for remark in remarks)
    listed = f'<ul class="findings">{items}</ul>' if items else ""
    if diagnosis.before.ills:
        return listed
    return f"{listed}<p>{escape(judged_by(diagnosis.before))}.</p>{tables.numbers_of(diagnosis.before)}"


def judged_by(examination: Examination) -> str:
    """What decided about a network: each number beside its limit, so that a narrow one is seen."""
    return f"Judged by: {', '.join(margin.words for margin in examination.margins)}"


def sentence(words: str) -> str:
    """A clause as a sentence.

    >>> sentence("collapses by layer 3"), sentence("the diagonal grows")
    ('The network collapses by layer 3.', 'The diagonal grows.')
    """
    clause = words if words.startswith("the ") else f"the network {words}"
    return f"{clause[0].upper()}{clause[1:]}."


def remedies(diagnosis: Diagnosis, fixes: Sequence[Fix]) -> str:
    """The suggestions with their numbers and descriptions, then what was tried in vain."""
    if diagnosis.healthy:
        return ""
    suggested = diagnosis.suggestions
    cured = any(attempt.cures for attempt in suggested)
    intro = (
        "Each of these alone cures it. The numbers are those of the changed network, propagated again."
        if cured and len(suggested) > 1
        else "This cures it. The numbers are those of the changed network, propagated again."
        if cured
        else "None of the changes that were tried cures it. These help."
        if suggested
        else "None of the changes that were tried helps."
    )
    cards = "".join(_card(number, *pair) for number, pair in enumerate(zip(suggested, fixes, strict=True), 1))
    return (
        f'<section id="remedies"><h2>What would fix it</h2><p>{intro}</p>'
        f'<div class="cards">{cards}</div>{_in_vain(diagnosis)}</section>'
    )


def _card(number: int, attempt: Attempt, fix: Fix) -> str:
    after = attempt.after
    assert after is not None  # a suggestion is a changed network
    left = "".join(f"<li>{escape(sentence(f.words))}</li>" for f in after.findings)
    rest = f"<p>With this change:</p><ul>{left}</ul>" if left else ""
    return (
        f'<article class="card"><h3>{number}. {escape(_capital(attempt.name))}</h3>'
        f'<p class="change">{escape("; ".join(attempt.changes))}</p>'
        f"<p>{'Cures it' if attempt.cures else 'Helps, but does not cure it'}. {escape(judged_by(after))}.</p>"
        f"{tables.before_and_after(attempt.before, after)}{rest}{_described(fix)}</article>"
    )


def _described(fix: Fix) -> str:
    if fix.text is not None:
        return _toml("The changed network as a description (TOML)", fix.text)
    if fix.file is not None:
        text, arrays = map(escape, fix.files)
        return f"<p>The changed network as a description: {text} beside this page, its arrays in {arrays}.</p>"
    return f"<p>The changed network has no description here: {escape(fix.refusal or '')}.</p>"


def _toml(summary: str, text: str) -> str:
    return f"<details><summary>{summary}</summary><pre>{escape(text)}</pre></details>"


def _in_vain(diagnosis: Diagnosis) -> str:
    others = [attempt for attempt in diagnosis.attempts if attempt not in diagnosis.suggestions]
    items = "".join(f"<li><strong>{escape(_capital(a.name))}</strong>: {escape(_outcome(a))}</li>" for a in others)
    return f"<details><summary>Also tried ({len(others)})</summary><ul>{items}</ul></details>" if items else ""


def _outcome(attempt: Attempt) -> str:
    if attempt.after is None:
        return f"not possible here: {attempt.refusal}"
    left = " ".join(sentence(finding.words) for finding in attempt.after.findings if finding.ill)
    return f"{'; '.join(attempt.changes)}. Still: {left} {judged_by(attempt.after)}."


def network(examination: Examination, kernel0: object) -> str:
    """What the network is, in words and as a description."""
    own = fix_of(examination.model, kernel0).text
    toml = "" if own is None else _toml("The network as a description (TOML)", own)
    return f"<pre>{escape(describe(examination.model))}</pre>{toml}"


def notes(examination: Examination) -> str:
    """What a reader of the numbers should know."""
    lines = [*examination.evolution.notes, *examination.norms.notes]
    if examination.evolution.below_floor.any():
        lines.append("* a rank residual below what rounding can tell from 0")
    if not examination.norms.query_exact.all():
        lines.append("* queries at first order: exact only where everything above the layer is linear")
    if examination.stream.final:
        lines.append(
            "the diagonal is judged and drawn up to the sum before the final norm; the table by depth ends behind it"
        )
    return "".join(f"<li>{escape(line)}</li>" for line in dict.fromkeys(lines))


def definitions() -> str:
    """What the names mean."""
    listed = {name.replace("_", " "): DEFINITIONS[name] for name in SHOWN} | {
        "collapsed": CRITERION.removeprefix("collapsed = "),
        "dead queries": "the query gradient's norm is below the type's rounding (bfloat16: 1/256) times the value's",
        "gradient norm": "root of the expected squared Frobenius norm at width 1, of a random loss <R, X_L>",
    }
    return "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in listed.items())


def _capital(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}"


def options(names: Sequence[str]) -> str:
    """The choices of the heat maps' network."""
    return "".join(f'<option value="{n}">{escape(name)}</option>' for n, name in enumerate(names))
