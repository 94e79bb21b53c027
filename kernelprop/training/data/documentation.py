"""Character text that every Python has: the documentation of its standard library."""

import importlib
import inspect
import warnings

from kernelprop.training.data.text import text
from kernelprop.training.data.tokens import Tokens

# Modules whose documentation is long, the same on every system, and whose import does nothing.
MODULES = (
    "argparse", "array", "ast", "asyncio", "base64", "bisect", "builtins", "calendar", "cmath", "collections",
    "concurrent.futures", "configparser", "contextlib", "copy", "csv", "dataclasses", "datetime", "decimal", "difflib",
    "email.message", "enum", "fractions", "ftplib", "functools", "gettext", "glob", "hashlib", "heapq", "html.parser",
    "http.client", "http.cookiejar", "inspect", "io", "ipaddress", "itertools", "json", "locale", "logging", "lzma",
    "math", "mimetypes", "numbers", "operator", "optparse", "os", "pathlib", "pdb", "pickle", "pickletools", "platform",
    "plistlib", "pprint", "pydoc", "queue", "random", "re", "sched", "selectors", "shelve", "shutil", "smtplib",
    "socket", "sqlite3", "ssl", "statistics", "string", "struct", "subprocess", "tarfile", "tempfile", "textwrap",
    "threading", "timeit", "tokenize", "trace", "traceback", "types", "typing", "unittest", "unittest.mock",
    "urllib.parse", "urllib.request", "uuid", "warnings", "weakref", "xml.dom.minidom", "xml.etree.ElementTree",
    "zipfile",
)  # fmt: skip

SIZE = 96  # printable ASCII and the line break


def documentation() -> Tokens:
    """The docstrings of the standard library's modules, classes and functions, character by character.

    The text is that of the running Python, so that another version has another; a checkpoint tells them apart.

    Raises:
        ValueError: where Python runs without docstrings.

    >>> source = documentation()
    >>> len(source.training) > 500_000, source.vocabulary
    (True, 96)
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # modules and names on their way out
        parts = [part for name in MODULES for part in _documented(name)]
    whole = "\n\n".join(dict.fromkeys(parts))
    readable = "".join(c for c in whole if c == "\n" or " " <= c <= "~")
    if len(readable) < 100_000:
        raise ValueError("documentation: this Python has no docstrings (python -OO leaves them out)")
    return text(readable, vocabulary=SIZE, title="documentation of the standard library")


def _documented(name: str) -> list[str]:
    try:
        module = importlib.import_module(name)
    except ImportError:  # a Python built without it
        return []
    described: list[object] = [module]
    for _, member in sorted(vars(module).items()):
        if (inspect.isclass(member) or inspect.isroutine(member)) and _belongs(member, name):
            described.append(member)
            own = sorted(vars(member).items()) if inspect.isclass(member) else []
            described.extend(method for key, method in own if inspect.isroutine(method) and key[0] != "_")
    found = (inspect.getdoc(one) or "" for one in described)
    return [part for part in found if len(part) > 40]


def _belongs(member: object, module: str) -> bool:
    home = getattr(member, "__module__", None) or module
    return home.lstrip("_").split(".")[0] == module.split(".")[0]
