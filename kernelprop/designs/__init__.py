"""Networks that keep their kernel, with all that a person needs to build them elsewhere."""

from kernelprop.designs.design import Design
from kernelprop.designs.making import design

__all__ = ["Design", "design"]
