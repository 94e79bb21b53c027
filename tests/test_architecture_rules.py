"""The house rules that a syntax tree shows: which room may import which, what loads late, what has a docstring."""

import ast
import itertools
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "kernelprop"
FILES = sorted(PACKAGE.rglob("*.py"))

# From left to right: a module imports only from its own room and from rooms to its left.
ROOMS = (
    (
        "foundations",
        (
            "precision",
            "door",
            "trust",
            "memory",
            "split_kernel",
            "powers_of_two",
            "kept_depths",
            "files",
            "stored_form",
        ),
    ),
    ("inputs", ("kernels", "examples", "storage", "array_files")),
    ("numbers and operators", ("activations", "attention", "observables")),
    ("layers", ("layers",)),
    ("architecture", ("architecture",)),
    ("descriptions", ("network_shaping", "descriptions")),
    ("results", ("results", "tables")),
    (
        "engines",
        (
            "chains",
            "cotangents",
            "tangents",
            "gradient_report",
            "unresolved",
            "infinite",
            "gradient_scans",
            "gradients",
            "fitting",
            "balance",
            "finite",
        ),
    ),
    ("scale-out", ("row_sharded",)),
    ("training", ("training",)),
    ("predictions", ("predictions",)),
    ("designs", ("designs",)),
    ("diagnosis", ("diagnosis",)),
    ("report", ("report",)),
    ("plotting and command", ("plotting", "cli", "__main__")),
)
ORDER = {name: (number, room) for number, (room, names) in enumerate(ROOMS) for name in names}
# Rooms that share a place, and where the first must not know the second.
STRANGERS = [*itertools.permutations(("activations", "attention", "observables"), 2), ("plotting", "cli")]

LATE = ("matplotlib", "typer", "rich")
# The modules that declare commands: their signatures are made of typer's options. The command's entry loads them
# late.
DECLARE_COMMANDS = (
    "cli/app.py",
    "cli/compare.py",
    "cli/describe.py",
    "cli/design.py",
    "cli/doctor.py",
    "cli/evolve.py",
    "cli/gradients.py",
    "cli/options.py",
    "cli/html_report.py",
    "cli/show.py",
    "cli/simulate.py",
    "cli/train.py",
    "cli/voice.py",
)
OUTSIDE = ("analysis", "figures", "paper_checks", "tests")


def name_of(path):
    return path.relative_to(PACKAGE).as_posix()


def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(tree):
    """Every import with its line, the module it names, and whether it stands inside a function."""
    late = {id(node) for function in ast.walk(tree) if _is_function(function) for node in ast.walk(function)}
    guards = [node for node in ast.walk(tree) if _is_type_checking(node)]
    typing_only = {id(node) for guard in guards for child in guard.body for node in ast.walk(child)}
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, id(node) in late) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import"
            assert node.module is not None
            yield node.lineno, node.module, id(node) in late
            if node.module == "kernelprop":
                yield from ((node.lineno, f"kernelprop.{alias.name}", id(node) in late) for alias in node.names)


def _is_function(node):
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)


def _is_type_checking(node):
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def room_of(module):
    """The room of ``kernelprop.room.file`` or of a path in the package; None for the package itself."""
    parts = module.removesuffix(".py").replace("/", ".").split(".")
    return parts[1] if parts[0] == "kernelprop" and len(parts) > 1 else None


def edges():
    """Every import between two rooms of the package, with the file and line where it stands."""
    for path in FILES:
        source = room_of(f"kernelprop/{name_of(path)}")
        for line, module, _ in imports(tree_of(path)):
            target = room_of(module)
            if target in ORDER and source != "__init__" and source != target:
                yield f"kernelprop/{name_of(path)}:{line}", source, target


def test_every_module_has_a_room():
    rooms = {room_of(f"kernelprop/{name_of(path)}") for path in FILES} - {"__init__"}
    assert rooms - set(ORDER) == set(), "say in ROOMS where these stand"


def test_imports_run_one_way():
    wrong = [
        f"{where}: {source} ({ORDER[source][1]}) imports {target} ({ORDER[target][1]})"
        for where, source, target in edges()
        if ORDER[target][0] > ORDER[source][0]
    ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_rooms_side_by_side_do_not_know_each_other():
    wrong = [f"{where}: {pair[0]} imports {pair[1]}" for where, *pair in edges() if tuple(pair) in STRANGERS]
    assert not wrong, "\n" + "\n".join(wrong)


def test_no_two_modules_import_each_other():
    graph: dict[str, set[str]] = {}
    for path in FILES:
        here = f"kernelprop.{name_of(path).removesuffix('.py').replace('/', '.')}"
        if not here.endswith(".__init__"):
            graph[here] = {module for _, module, late in imports(tree_of(path)) if not late}
    circles = [f"{one} and {other}" for one in graph for other in graph[one] & set(graph) if one in graph[other]]
    assert not circles, circles


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_drawing_and_printing_libraries_load_late_and_in_their_rooms(path):
    for line, module, late in imports(tree_of(path)):
        library = module.split(".")[0]
        if library not in LATE:
            continue
        where = f"kernelprop/{name_of(path)}:{line}: {library}"
        assert room_of(f"kernelprop/{name_of(path)}") in ("plotting", "cli"), f"{where} outside plotting and cli"
        declares = library == "typer" and name_of(path) in DECLARE_COMMANDS
        assert late or declares, f"{where} is imported at the top; move it into the function that uses it"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_the_package_stands_alone(path):
    for line, module, _ in imports(tree_of(path)):
        assert module.split(".")[0] not in OUTSIDE, f"kernelprop/{name_of(path)}:{line} imports {module}"
        assert module != "__future__", f"kernelprop/{name_of(path)}:{line}: jaxtyping needs real annotations"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_modules_are_short_and_have_a_duty_for_a_name(path):
    assert path.stem not in ("utils", "util", "helpers", "helper", "misc", "common"), f"{name_of(path)} names no duty"
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= 300, f"kernelprop/{name_of(path)} has {lines} lines"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_everything_public_has_a_docstring(path):
    tree = tree_of(path)
    if path.stat().st_size:
        assert ast.get_docstring(tree), f"kernelprop/{name_of(path)} has no docstring"
    for owner, body in [("", tree.body), *((f"{c.name}.", c.body) for c in tree.body if isinstance(c, ast.ClassDef))]:
        if owner.startswith("_"):
            continue
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                overloaded = any(isinstance(d, ast.Name) and d.id == "overload" for d in node.decorator_list)
                where = f"kernelprop/{name_of(path)}:{node.lineno}: {owner}{node.name}"
                assert overloaded or ast.get_docstring(node), f"{where} has no docstring"


def test_an_attention_softmax_is_called_in_one_file():
    callers = [name_of(path) for path in FILES if ".softmax(" in path.read_text(encoding="utf-8")]
    assert callers == ["attention/softmax.py"]
