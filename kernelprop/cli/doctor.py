"""``kernelprop doctor``: is this installation sound?"""

from typing import TYPE_CHECKING, Any

import typer

from kernelprop.cli.voice import Json, Quiet, Voice, say

if TYPE_CHECKING:
    from rich.console import Console

UNSOUND = 1


def doctor(json: Json = False, quiet: Quiet = False) -> None:
    """Check this installation: versions, devices, precision, and what it computes.

    Some releases of JAX return wrong numbers under jit without a word; a pattern
    that showed it is computed in jit, in eager mode and in numpy. Exit code 0 if
    all is well, 1 if something is not.

    [bold]Examples[/]

    kernelprop doctor
    kernelprop doctor --quiet && kernelprop evolve --example minilm
    kernelprop doctor --json > installation.json
    """
    from kernelprop.cli import installation

    voice = Voice(json, quiet)
    with voice.working("checking"):
        found = {
            "format": "kernelprop doctor",
            "system": installation.system(),
            "versions": installation.versions(),
            "devices": installation.devices(),
            "precision": installation.precision(),
        }
        checks = installation.self_checks()
    sound = all(check.right for check in checks)
    told = [{"name": check.name, "right": check.right, "words": check.words} for check in checks]
    voice.answer(lambda: {**found, "sound": sound, "checks": told}, lambda stream: _print(found, checks, stream))
    if not sound:
        if quiet and not json:
            _complain(checks)
        raise typer.Exit(UNSOUND)


def _print(found: dict[str, Any], checks: list[Any], stream: "Console") -> None:
    say(stream, found["system"])
    say(stream, ", ".join(f"{name} {number}" for name, number in found["versions"].items()))
    for device in found["devices"]:
        say(stream, f"device {device}")
    for name, words in found["precision"].items():
        say(stream, f"{name}: {words}")
    stream.print()
    for check in checks:
        mark, style = ("right", "green") if check.right else ("WRONG", "bold red")
        say(stream, f"{mark}: {check.name}: {check.words}", style)


def _complain(checks: list[Any]) -> None:
    from kernelprop.cli.console import complain

    for check in checks:
        if not check.right:
            complain(f"{check.name}: {check.words}")
