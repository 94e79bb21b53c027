"""Files that describe a network, as the command takes them, and text for streams of few letters."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from kernelprop.architecture import Transformer
    from kernelprop.descriptions import Description

LETTERS = {
    "Σ": "S", "σ": "sigma", "α": "alpha", "β": "beta", "γ": "gamma", "ρ": "rho", "τ": "tau", "φ": "phi", "Φ": "Phi",
    "π": "pi", "∘": "*", "ᵀ": "'", "²": "^2", "³": "^3", "⁻¹": "^-1", "°": "0", "₁": "1", "₂": "2",
}  # fmt: skip


def read_file(file: Path) -> "Description":
    """Read a TOML description, or the network and input kernel of a saved evolution.

    Raises:
        ValueError: naming the file, when it can't be read or holds neither.
    """
    from kernelprop.descriptions import Description, load_description

    if file.suffix != ".npz":
        return load_description(file)
    model, found = _saved(file)
    return Description(file.stem, model, _input_kernel(file, model, found), _notes(found))


def read_network(file: Path) -> "Transformer":
    """Read the network alone, of a TOML description or of any saved result that has one.

    Raises:
        ValueError: naming the file, when it can't be read or holds none.
    """
    return read_network_with_notes(file)[0]


def read_network_with_notes(file: Path) -> "tuple[Transformer, tuple[str, ...]]":
    """The same, and what a reader of its numbers should know about it."""
    from kernelprop.descriptions import load_description

    if file.suffix == ".npz":
        model, found = _saved(file)
        return model, _notes(found)
    described = load_description(file)
    return described.model, described.notes


def _notes(found: Any) -> tuple[str, ...]:
    """The notes of a result that are about its network."""
    from kernelprop.descriptions.given_rows import SUBJECT

    return tuple(note for note in getattr(found, "notes", ()) if note.startswith(SUBJECT))


def _saved(file: Path) -> "tuple[Transformer, Any]":
    from kernelprop.architecture import Transformer
    from kernelprop.results import load

    found = load(file)
    model = getattr(found, "description", None)
    if not isinstance(model, Transformer):
        raise ValueError(f"{file}: holds no network")
    return model, found


def _input_kernel(file: Path, model: "Transformer", found: Any) -> "np.ndarray":
    """The kernel that entered: the one at depth 0, less what positional embeddings add to it."""
    import numpy as np

    from kernelprop.results import Evolution

    if not isinstance(found, Evolution) or 0 not in found.depth:
        raise ValueError(f"{file}: holds no input kernel (none was kept at depth 0); give the description instead")
    if found.kernels.ndim != 3:
        raise ValueError(f"{file}: holds {found.kernels.shape[0]} input kernels; one is wanted, give a description")
    kernel = np.asarray(found.kernels[int(np.flatnonzero(found.depth == 0)[0])], np.float64)
    return kernel if model.positions is None else kernel - model.positions


def plain_letters(text: str, encoding: str | None) -> str:
    """The text itself, or in letters that any stream has where this one's encoding lacks some.

    >>> plain_letters("σ₁² Σ", "ascii")
    'sigma1^2 S'
    """
    try:
        text.encode(encoding or "ascii")
    except UnicodeEncodeError:
        for letter, plain in LETTERS.items():
            text = text.replace(letter, plain)
    return text
