"""Files that describe a network, as the command takes them, and text for streams of few letters."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernelprop.descriptions import Description

LETTERS = {
    "Σ": "S", "σ": "sigma", "α": "alpha", "β": "beta", "γ": "gamma", "ρ": "rho", "τ": "tau", "φ": "phi", "Φ": "Phi",
    "π": "pi", "∘": "*", "ᵀ": "'", "²": "^2", "³": "^3", "⁻¹": "^-1", "°": "0", "₁": "1", "₂": "2",
}  # fmt: skip


def read_file(file: Path) -> "Description":
    """Read a TOML description, or the network and input kernel of a saved result.

    Raises:
        ValueError: naming the file, when it can't be read or holds neither.
    """
    from kernelprop.descriptions import Description, load_description

    if file.suffix != ".npz":
        return load_description(file)
    from kernelprop.architecture import Transformer
    from kernelprop.results import load

    model = getattr(load(file), "description", None)
    if not isinstance(model, Transformer):
        raise ValueError(f"{file}: holds no network")
    from kernelprop.kernels import identity

    return Description(file.stem, model, identity(model.length))


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
