"""A design as files: tensors for the attention, and a description with everything else in words and numbers."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelprop import memory
from kernelprop.attention.softmax_form import SoftmaxForm
from kernelprop.attention.stack import AttentionStack
from kernelprop.descriptions.activations import written_activation
from kernelprop.descriptions.in_words import activation_lines
from kernelprop.descriptions.initialisation import initialisation
from kernelprop.descriptions.writing import as_toml, description_tables, named_files
from kernelprop.files import write_whole
from kernelprop.precision import float_dtype

if TYPE_CHECKING:
    from kernelprop.designs.design import Design

REALISATION = (
    "Attn(X) = D softmax(Q K^T / sqrt(d_k) + B + mask) X W_V W_O: add bias[l] to the logits of layer l (0-based) in "
    "every head, forbid where mask is false, and multiply row i of the result by rescale[l, i]. With W_Q = 0 the "
    "attention matrix is the design's; queries, keys, values, B and D may then be trained."
)


def save_design(design: "Design", path: str | os.PathLike[str], dtype: str = "float32") -> list[Path]:
    """Write ``path.safetensors`` and ``path.toml``, each whole or not at all, and return both.

    Tensors, ``L`` layers and ``T`` positions: ``rescale (L, T)``, ``bias (L, T, T)`` (0 where masked, minus infinity
    where one layer forbids what another allows), ``mask (T, T)`` bool (true = may attend), ``schedule (L+1,)``,
    ``kernel_first`` and ``kernel_last``, ``(T, T)``, of the whole network. The TOML is a description for
    `load_description`, with a table ``[design]`` for its reader.

    Args:
        design: what to write.
        path: without an ending.
        dtype: of the tensors; what a softmax makes of a float32 bias is right to ``(2 + |B|) eps`` relative.

    Raises:
        ValueError: for a folder that can't be written, tensors that don't fit in memory, another dtype, and
            attention that no softmax makes.
    """
    number = float_dtype(dtype)
    stem = Path(path)
    tensors_file, words_file = (stem.with_name(stem.name + ending) for ending in (".safetensors", ".toml"))
    _refuse_too_large(design, number)
    tables, arrays = description_tables(design.model, design.kernel0, stem.name)
    tables = named_files(tables, tensors_file.name)
    tables["design"] = words(design, tensors_file.name)
    content = as_toml(tables).encode()
    tensors = {name: np.ascontiguousarray(array) for name, array in {**arrays, **_tensors(design, number)}.items()}
    write_whole(tensors_file, lambda stream: stream.write(_packed(tensors)))
    write_whole(words_file, lambda stream: stream.write(content))
    return [tensors_file, words_file]


def words(design: "Design", tensors: str) -> dict[str, Any]:
    """The table ``[design]``: how to build the network, and what its kernel does."""
    model = design.model
    table: dict[str, Any] = {
        "tensors": tensors,
        "input_scale": design.input_scale,
        "attention": REALISATION,
        "initialisation": [
            f"{w.name} {w.shape}: variance {w.variance}{f', {w.note}' if w.note else ''}" for w in initialisation(model)
        ],
        "weights": "d: width, H heads of width d_k; entries independent Gaussian of mean 0, or orthogonal matrices",
        design.parameter: design.schedule.tolist(),
    }
    if model.mlp is not None:
        table["activation"] = activation_lines(model.mlp.activation)
        written = written_activation(model.mlp.activation)
        table |= {"parameters": written} if isinstance(written, dict) else {}
    for row in design.table():
        name = row.pop("kernel").replace(" ", "_")
        table[name] = row
    return table


def _tensors(design: "Design", dtype: np.dtype) -> dict[str, np.ndarray]:
    form = softmax_form(design.model.attention, dtype)
    return {
        "rescale": form.rescale,
        "bias": form.bias,
        "mask": form.mask,
        "schedule": design.schedule.astype(dtype),
        "kernel_first": design.kernel0.astype(dtype),
        "kernel_last": design.network.kernel(-1).astype(dtype),
    }


def softmax_form(operator: AttentionStack, dtype: np.dtype) -> SoftmaxForm:
    """Every layer's ``D`` and ``B`` and the mask that they share, cast layer by layer to bound the memory.

    Raises:
        ValueError: naming the layer and entry that no softmax makes.
    """
    rescale = np.empty((operator.depth, operator.length), dtype)
    bias = np.empty((operator.depth, operator.length, operator.length), dtype)
    masks = []
    for index, layer in enumerate(operator):
        try:
            form = layer.softmax_form()
        except ValueError as error:
            raise ValueError(f"design: layer {index + 1}: {error}") from None
        rescale[index], bias[index] = form.rescale, form.bias
        masks.append(form.mask)
    shared = np.any(masks, axis=0)
    for index, mask in enumerate(masks):
        # A position that one layer forbids and another allows: a bias that the softmax takes to 0.
        bias[index][shared & ~mask] = -np.inf
    return SoftmaxForm(rescale, bias, shared)


def _packed(tensors: dict[str, np.ndarray]) -> bytes:
    from safetensors.numpy import save

    return save(tensors, {"format": "kernelprop design"})


def _refuse_too_large(design: "Design", dtype: np.dtype) -> None:
    depth, length = design.model.depth, design.model.length
    # The tensors, and once more as the bytes of the file.
    needed = 2 * depth * length**2 * dtype.itemsize
    available = memory.available_bytes()
    if available is not None and needed > available:
        raise ValueError(
            f"design: the biases of {depth} layers of {length} positions need {memory.in_words(needed)}, and "
            f"{memory.in_words(available)} are available: build the schedule's layers where they are used"
        )
