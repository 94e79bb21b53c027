"""The training lab: data without a download, and training runs of the finite network of a description."""

from kernelprop.training.data.copying import copy_back
from kernelprop.training.data.corpora import corpus
from kernelprop.training.data.documentation import documentation
from kernelprop.training.data.markov import markov
from kernelprop.training.data.reversal import reversal
from kernelprop.training.data.text import text
from kernelprop.training.data.tokens import tokens

__all__ = ["copy_back", "corpus", "documentation", "markov", "reversal", "text", "tokens"]
