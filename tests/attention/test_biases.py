"""Relative biases against their formulas, and the attention that a bias makes."""

import math

import numpy as np
import pytest

import kernelprop as kp
from kernelprop.attention.biases import alibi_bias, alibi_slopes, softmax_attention, t5_bias, t5_buckets


def test_the_slopes_of_alibi_are_those_of_its_authors():
    np.testing.assert_allclose(alibi_slopes(8), 2.0 ** -np.arange(1, 9))
    assert alibi_slopes(16)[0] == pytest.approx(2**-0.5)
    # Twelve heads: those of 8, then the first, third, … of 16.
    np.testing.assert_allclose(alibi_slopes(12)[8:], 2.0 ** (-0.5 * np.array([1, 3, 5, 7])))
    assert alibi_slopes(1).tolist() == [2**-8]


def test_alibi_falls_with_the_distance():
    bias = alibi_bias(5, heads=4)
    assert bias.shape == (4, 5, 5)
    np.testing.assert_allclose(bias[1, 4], -(2.0**-4) * np.array([4, 3, 2, 1, 0]))
    np.testing.assert_array_equal(bias, np.swapaxes(bias, -1, -2))
    np.testing.assert_array_equal(alibi_bias(5, slopes=alibi_slopes(4)), bias)
    # As the bias of a causal softmax: row i is geometric with ratio e^{−m}.
    row = softmax_attention(alibi_bias(5, slopes=0.7), causal=True).as_matrix()[3]
    np.testing.assert_allclose(row[1:4] / row[:3], np.exp(0.7))
    assert row[4] == 0


def bucket_of(offset, buckets, max_distance, causal):
    """The bucket of key minus query, from the definition."""
    if causal:
        each, distance, first = buckets, max(-offset, 0), 0
    else:
        each, distance, first = buckets // 2, abs(offset), buckets // 2 if offset > 0 else 0
    exact = each // 2
    if distance < exact:
        return first + distance
    share = math.log(distance / exact) / math.log(max_distance / exact)
    return first + min(exact + math.floor(share * (each - exact) + 1e-9), each - 1)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("buckets", "max_distance"), [(32, 128), (8, 20), (6, 50)])
def test_t5_buckets_follow_their_definition(causal, buckets, max_distance):
    length = 150
    expected = [[bucket_of(j - i, buckets, max_distance, causal) for j in range(length)] for i in range(length)]
    np.testing.assert_array_equal(t5_buckets(length, buckets, max_distance, causal), expected)


def test_t5_buckets_at_known_distances():
    """32 buckets, 128 positions, both directions: 8 exact, then steps of 16^(1/8) = √2."""
    behind = t5_buckets(200)[199, ::-1]
    assert behind[[0, 7, 8, 11, 12, 15, 16, 23, 32, 64, 127, 128, 199]].tolist() == [
        *(0, 7, 8, 8, 9, 9, 10, 11, 12, 14, 15, 15, 15),
    ]
    assert t5_buckets(3)[0].tolist() == [0, 17, 18]
    assert t5_buckets(3, causal=True)[0].tolist() == [0, 0, 0]


def test_a_t5_table_has_a_column_a_head():
    table = np.random.default_rng(0).normal(size=(8, 3))
    bias = t5_bias(20, table, max_distance=12)
    assert bias.shape == (3, 20, 20)
    np.testing.assert_array_equal(bias[2], t5_bias(20, table[:, 2], max_distance=12))


def test_softmax_attention_is_the_softmax_form_read_backwards():
    operator = kp.espa(9, 2, gamma=0.1)[1]
    form = operator.softmax_form()
    back = softmax_attention(form.bias, form.mask, form.rescale)
    np.testing.assert_allclose(back.as_matrix(), operator.as_matrix(), rtol=1e-14)
    assert (back.as_matrix()[~form.mask] == 0).all()


def test_softmax_attention_with_a_bias_a_head():
    """Case 23: heads that look at themselves alone, and at all alike."""
    bias = np.array([[[0.0, -np.inf], [-np.inf, 0.0]], np.zeros((2, 2))])
    with pytest.raises(ValueError, match=r"bias: entry \(0, 1\) is masked in one of heads 0 and 1 only"):
        softmax_attention(bias)
    operator = softmax_attention(np.maximum(bias, -1000))
    assert operator.heads == 2
    np.testing.assert_allclose(operator.conjugate(np.eye(2)), [[0.75, 0.25], [0.25, 0.75]])


def test_padding_is_left_out():
    matrix = softmax_attention(np.zeros((3, 3)), mask=[True, True, False]).as_matrix()
    np.testing.assert_array_equal(matrix, [[0.5, 0.5, 0]] * 3)
    infinite = softmax_attention([[0.0, -np.inf], [0.0, 0.0]]).as_matrix()
    np.testing.assert_array_equal(infinite, [[1, 0], [0.5, 0.5]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        # Case 09.
        (
            lambda: softmax_attention(np.zeros((3, 3)), [[True] * 3, [True] * 3, [False] * 3]),
            "softmax_attention: position 2: every key is masked",
        ),
        (lambda: softmax_attention(np.zeros((3, 3)), [False, True, True], causal=True), "position 0: every key"),
        (lambda: softmax_attention(np.full((2, 2), -np.inf)), "position 0: every key is masked"),
        (lambda: softmax_attention(np.full((2, 2), np.inf)), r"bias: entry \(0, 0\) is inf"),
        (lambda: softmax_attention(np.full((2, 2), np.nan)), "bias: entry .* is nan"),
        (lambda: softmax_attention(np.zeros((2, 3))), r"bias: shape \(2, 3\) is neither"),
        (lambda: softmax_attention(0.0), r"bias: shape \(\) is neither"),
        (lambda: softmax_attention(np.zeros((2, 2)), [1, 1]), "mask: dtype int64 is not bool"),
        (lambda: softmax_attention(np.zeros((2, 2)), [True] * 3), r"mask: shape \(3,\) is neither"),
        (lambda: softmax_attention(np.zeros((2, 2)), rescale=[1, 0]), "rescale: position 1: 0 is not positive"),
        (lambda: softmax_attention(np.zeros((2, 2)), rescale=[1.0]), r"rescale: shape \(1,\) is not \(2,\)"),
        (lambda: alibi_bias(3), "give heads or slopes"),
        (lambda: alibi_bias(3, 2, 0.5), "give heads or slopes"),
        (lambda: alibi_bias(3, 0), "alibi: heads: 0 is too small"),
        (lambda: alibi_bias(3, slopes=[[0.5]]), r"slopes: shape \(1, 1\)"),
        (lambda: t5_buckets(3, 7), "7 is odd"),
        (lambda: t5_buckets(3, 2), "2 is too small; it must be at least 4"),
        (lambda: t5_buckets(3, 32, 8), "max_distance: 8 is too small; it must be at least 9"),
        (lambda: t5_bias(3, np.zeros((4, 1, 1))), r"table: shape \(4, 1, 1\)"),
    ],
)
def test_bad_input_is_refused_in_one_line(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)
