"""The shipped example: what it holds, and the collapse that attention alone brings, by plain loops."""

import numpy as np
import pytest

from kernelprop import door, examples

ATTENTION_ALONE = [0.3787322, 0.7711402, 0.9484374, 0.9917793, 0.9975848, 0.9998545]
MEASURED = [0.0848, 0.1608, 0.1896, 0.2166, 0.2324, 0.2909, 0.3958]


def mean_cosine(kernel):
    length = len(kernel)
    total = 0.0
    for i in range(length):
        for j in range(length):
            if i != j:
                total += kernel[i, j] / np.sqrt(kernel[i, i] * kernel[j, j])
    return total / (length * (length - 1))


@pytest.fixture(scope="module")
def minilm():
    return examples.minilm()


def test_what_it_holds(minilm):
    assert minilm.attention.shape == (6, 12, 55, 55)
    assert minilm.attention.dtype == np.float64
    assert minilm.kernels.shape == (7, 55, 55)
    assert (len(minilm.tokens), minilm.tokens[0], minilm.tokens[-1]) == (55, "[CLS]", "[SEP]")
    np.testing.assert_allclose(minilm.attention.sum(-1), 1, atol=1e-6)
    assert (minilm.attention >= 0).all()
    door.kernel(minilm.kernels)


def test_attention_alone_collapses_it(minilm):
    kernel, seen = minilm.kernels[0], []
    for layer in minilm.attention:
        kernel = sum(head @ kernel @ head.T for head in layer) / 12
        seen.append(mean_cosine(kernel))
    np.testing.assert_allclose(seen, ATTENTION_ALONE, atol=5e-8)


def test_the_real_network_does_not_collapse(minilm):
    np.testing.assert_allclose([mean_cosine(k) for k in minilm.kernels], MEASURED, atol=5e-5)


def test_changes_do_not_reach_the_next_reader(minilm):
    mine = examples.minilm()
    mine.attention[:] = 0
    assert examples.minilm().attention.max() > 0.9
