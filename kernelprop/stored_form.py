"""A tree of numbers, arrays and the package's own classes as JSON and arrays, and back.

Arrays become named entries. For what JSON lacks a tagged object stands: ``{"array": name}``,
``{"tuple": […]}``, ``{"class": "module:name", "fields": {…}}`` and so on.

Only dataclasses (and equinox modules) defined inside ``kernelprop``, or declared with ``storable``, are ever
rebuilt, and from their fields: ``__init__`` and its checks ran when the object was made. A user's own
functions are kept by name only and handed back when the tree is rebuilt.
"""

import dataclasses
import importlib
import math
from collections.abc import Callable, Mapping
from functools import singledispatchmethod
from types import MappingProxyType
from typing import Any, TypeVar

import jax
import numpy as np

D = TypeVar("D")

PACKAGE = "kernelprop"
_DECLARED: dict[str, type] = {}
_CONTAINERS = (tuple, list, dict)
_CONTAINER_NAMES = "a plain tuple, list or dict"


def storable(cls: type[D]) -> type[D]:
    """Declare a dataclass outside the package (a user's own layer) as one that may be rebuilt from a file."""
    if not dataclasses.is_dataclass(cls):
        raise ValueError(f"storable: {cls.__qualname__} is no dataclass or equinox module")
    _DECLARED[_name(cls)] = cls
    return cls


@dataclasses.dataclass(frozen=True)
class MissingFunction:
    """Stands for a function that was stored by name and not handed back; calling it is an error."""

    name: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Raise a ``ValueError`` that says how to hand the function back."""
        raise ValueError(
            f"function {self.name!r} was stored by name only; load the file with "
            f"functions={{{self.name!r}: your function}}"
        )


class Encoder:
    """Collects the arrays of a tree while it turns the rest into JSON."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._functions: dict[str, Any] = {}

    def encode(self, value: Any, path: str) -> Any:
        """Return the JSON form of ``value``; its arrays go to ``self.arrays`` under names that start with path.

        Raises:
            ValueError: naming the path of something that can't be stored.
        """
        if dataclasses.is_dataclass(value) and not isinstance(value, type | MissingFunction):
            return self._object(value, path)
        if isinstance(value, _CONTAINERS) and type(value) not in _CONTAINERS:
            raise ValueError(f"{path or 'value'}: {_name(type(value))} can't be stored; use {_CONTAINER_NAMES}")
        return self._encode(value, path)

    @singledispatchmethod
    def _encode(self, value: Any, path: str) -> Any:
        if callable(value):
            return self._function(value)
        raise ValueError(f"{path or 'value'}: {_name(type(value))} can't be stored")

    @_encode.register(type(None))
    @_encode.register(bool)
    @_encode.register(int)
    @_encode.register(str)
    def _(self, value: Any, path: str) -> Any:
        return value

    @_encode.register(float)
    def _(self, value: float, path: str) -> Any:
        return float(value) if math.isfinite(value) else {"float": str(float(value))}

    @_encode.register(np.ndarray)
    @_encode.register(np.generic)
    @_encode.register(jax.Array)
    def _(self, value: Any, path: str) -> Any:
        entry, number = path or "array", 1
        while entry in self.arrays:  # a key "a/b" beside a key "a" that holds a "b"
            number += 1
            entry = f"{path} {number}"
        self.arrays[entry] = _portable(value, path)
        return {"scalar" if isinstance(value, np.generic) else "array": entry}

    @_encode.register(np.dtype)
    def _(self, value: np.dtype, path: str) -> Any:
        return {"dtype": value.name}

    @_encode.register(tuple)
    def _(self, value: tuple, path: str) -> Any:
        return {"tuple": [self.encode(item, _join(path, i)) for i, item in enumerate(value)]}

    @_encode.register(list)
    def _(self, value: list, path: str) -> Any:
        return [self.encode(item, _join(path, i)) for i, item in enumerate(value)]

    @_encode.register(dict)
    @_encode.register(MappingProxyType)
    def _(self, value: Mapping, path: str) -> Any:
        for key in value:
            if not isinstance(key, str):
                raise ValueError(f"{path}: key {key!r} can't be stored; keys must be strings")
        tag = "dict" if isinstance(value, dict) else "mapping"
        return {tag: {key: self.encode(item, _join(path, key)) for key, item in value.items()}}

    def _object(self, value: Any, path: str) -> Any:
        name = _name(type(value))
        if not _known(name) or _find(name) is not type(value):
            if callable(value):
                return self._function(value)
            raise ValueError(f"{path or 'value'}: {name} can't be stored; declare its class with storable")
        fields = dataclasses.fields(value)
        parts = {
            field.name: self.encode(getattr(value, field.name), _join(path, field.name))
            for field in fields
            if hasattr(value, field.name)
        }
        return {"class": name, "fields": parts}

    def _function(self, value: Any) -> Any:
        if isinstance(value, MissingFunction):
            return {"user_function": value.name}
        name = _name(value) if hasattr(value, "__qualname__") else ""
        if _known(name) and _find(name) is value:
            return {"function": name}
        return {"user_function": self._unique(getattr(value, "__name__", type(value).__name__), value)}

    def _unique(self, name: str, function: Any) -> str:
        """Two functions of one name (two lambdas) must stay two: the second becomes "name 2"."""
        candidate, number = name, 1
        while self._functions.setdefault(candidate, function) is not function:
            number += 1
            candidate = f"{name} {number}"
        return candidate


def decode(form: Any, arrays: Mapping[str, np.ndarray], functions: Mapping[str, Callable]) -> Any:
    """Rebuild the tree from its JSON form, its arrays, and the user's functions by name.

    Raises:
        ValueError, KeyError: for a form that ``Encoder`` didn't write.
    """
    if isinstance(form, list):
        return [decode(item, arrays, functions) for item in form]
    if not isinstance(form, dict):
        return form
    if "class" in form:
        parts = {key: decode(item, arrays, functions) for key, item in form["fields"].items()}
        return _rebuild(form["class"], parts)
    ((tag, content),) = form.items()
    return _DECODERS[tag](content, arrays, functions)


_DECODERS: dict[str, Callable[[Any, Mapping[str, np.ndarray], Mapping[str, Callable]], Any]] = {
    "float": lambda content, arrays, functions: float(content),
    "array": lambda content, arrays, functions: arrays[content],
    "scalar": lambda content, arrays, functions: arrays[content][()],
    "dtype": lambda content, arrays, functions: np.dtype(content),
    "tuple": lambda content, arrays, functions: tuple(decode(content, arrays, functions)),
    "dict": lambda content, arrays, functions: _mapping(content, arrays, functions),
    "mapping": lambda content, arrays, functions: MappingProxyType(_mapping(content, arrays, functions)),
    "function": lambda content, arrays, functions: _function(content),
    "user_function": lambda content, arrays, functions: functions.get(content, MissingFunction(content)),
}


def _function(name: str) -> Callable:
    found = _find(name)
    if not callable(found):
        raise ValueError(f"there is no function {name}; the file is from another version")
    return found


def _mapping(content: Mapping, arrays: Mapping[str, np.ndarray], functions: Mapping[str, Callable]) -> dict:
    return {key: decode(item, arrays, functions) for key, item in content.items()}


def _rebuild(name: str, parts: dict[str, Any]) -> Any:
    cls = _find(name)
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
        raise ValueError(f"{name} is no class that can be rebuilt")
    fields = {field.name: field for field in dataclasses.fields(cls)}
    unknown = parts.keys() - fields.keys()
    if unknown:
        raise ValueError(f"{name} has no field {min(unknown)!r}; the file is from another version")
    instance = object.__new__(cls)
    for key, field in fields.items():
        object.__setattr__(instance, key, parts[key] if key in parts else _default(name, field))
    return instance


def _default(name: str, field: dataclasses.Field) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    raise ValueError(f"{name}: field {field.name!r} is missing; the file is from another version")


def _portable(value: Any, path: str) -> np.ndarray:
    try:
        array = np.asarray(value)
    except TypeError:
        raise ValueError(f"{path}: {value.dtype} can't be stored") from None
    if array.dtype.kind in "biufcUS":
        return array
    if array.dtype.kind == "V" and array.dtype.names is None and array.dtype.itemsize <= 2:
        # bfloat16 and the 8-bit floats: numpy would write them as raw bytes of no type.
        return array.astype(np.float32)
    raise ValueError(f"{path}: an array of {array.dtype} can't be stored")


def _join(path: str, key: object) -> str:
    return f"{path}/{key}" if path else str(key)


def _name(value: Any) -> str:
    return f"{value.__module__}:{value.__qualname__}"


def _known(name: str) -> bool:
    return name in _DECLARED or name.partition(":")[0].partition(".")[0] == PACKAGE


def _find(name: str) -> Any:
    """Return the class or function of that name, or None where the package has none."""
    if name in _DECLARED:
        return _DECLARED[name]
    module, _, qualname = name.partition(":")
    if not _known(name):
        raise ValueError(f"{name} is not part of {PACKAGE}; declare its class with storable before loading")
    found: Any = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    # Only what is defined there: not what the module imports, such as `os`.
    return found if hasattr(found, "__qualname__") and _name(found) == name else None
