"""Networks as TOML files, and in words and equations."""

from kernelprop.descriptions.loading import Description, load_description
from kernelprop.descriptions.writing import description_toml, save_description

__all__ = ["Description", "description_toml", "load_description", "save_description"]
