"""Sources of training data: entropies against closed forms, tasks as they are stated, what is refused."""

import gzip
import json
import math

import numpy as np
import pytest

from kernelprop.training import copy_back, corpus, markov, reversal, text, tokens
from kernelprop.training.data.source import generator


def binary(p):
    return -p * math.log(p) - (1 - p) * math.log(1 - p)


def first_order(p, q):
    """A chain of two symbols that leaves 0 with probability p and 1 with q, written as one of order 2."""
    rows = np.array([[1 - p, p], [q, 1 - q]])
    return markov(transitions=np.broadcast_to(rows[None], (2, 2, 2)).copy())


def test_entropies_of_a_first_order_chain():
    """Stationary (q, p)/(p + q); the second last symbol tells nothing."""
    p, q = 0.3, 0.1
    first, second, third = first_order(p, q).entropies()
    zero = q / (p + q)
    assert first == pytest.approx(binary(zero), rel=1e-12)
    assert second == pytest.approx(zero * binary(p) + (1 - zero) * binary(q), rel=1e-12)
    assert third == pytest.approx(second, rel=1e-12)


def test_entropies_where_only_both_symbols_tell():
    """x_i = x_{i−1} xor x_{i−2} with noise ε: pairs are uniform, one symbol tells nothing."""
    noise = 0.1
    transitions = np.empty((2, 2, 2))
    for a in range(2):
        for b in range(2):
            transitions[a, b, a ^ b], transitions[a, b, 1 - (a ^ b)] = 1 - noise, noise
    source = markov(transitions=transitions)
    np.testing.assert_allclose(source.entropies(), [math.log(2), math.log(2), binary(noise)], rtol=1e-12)
    best = (math.log(2) + 9 * binary(noise)) / 10
    assert source.levels(10)["best"] == pytest.approx(best, rel=1e-12)


def test_agreement_of_two_positions():
    """P(x_0 = x_k) = Σ_i π_i (π_i + (1 − π_i) λᵏ), λ = 1 − p − q."""
    p, q = 0.3, 0.1
    stationary = np.array([q, p]) / (p + q)
    lags = np.arange(6)[:, None]
    right = np.sum(stationary * (stationary + (1 - stationary) * (1 - p - q) ** lags), axis=1)
    np.testing.assert_allclose(first_order(p, q).agreement(6)[0], right, rtol=1e-12)


def test_batches_have_the_stated_distribution():
    """Triples of 4000 independent stretches against P(a) and P(c | a, b): χ² of 8 cells, 7 degrees of freedom.

    Accepted below 24.3 (p = 0.001 of a right source); the control exchanges two symbols.
    """
    source = markov(2, seed=3, concentration=1.0)
    batch = source.batch(4, 4000, generator("training", 0, 0), "training")
    np.testing.assert_array_equal(batch.targets[:, :-1], batch.tokens[:, 1:])
    triples = batch.tokens[:, 1:4] @ np.array([4, 2, 1])
    counts = np.bincount(triples, minlength=8)
    expected = (source.pairs[:, :, None] * source.transitions).ravel() * 4000

    def chi2(expected):
        return np.sum((counts - expected) ** 2 / expected)

    assert chi2(expected) < 24.3
    assert chi2(expected[::-1]) > 24.3


def test_a_batch_belongs_to_its_number():
    source = markov(4)

    def batch(split, seed, number):
        return source.batch(8, 3, generator(split, seed, number), split).tokens

    np.testing.assert_array_equal(batch("training", 1, 5), batch("training", 1, 5))
    assert (batch("training", 1, 5) != batch("training", 1, 6)).any()
    assert (batch("training", 1, 5) != batch("training", 2, 5)).any()
    np.testing.assert_array_equal(batch("validation", 1, 5), batch("validation", 2, 5))
    assert (batch("training", 0, 5) != batch("validation", 0, 5)).any()


def test_copying_and_reversal_say_what_they_should():
    random = np.random.default_rng(0)
    batch = copy_back(5, lag=3).batch(7, 4, random, "training")
    for row in range(4):
        assert batch.counted[row].tolist() == [False] * 3 + [True] * 4
        assert batch.targets[row, 3:].tolist() == batch.tokens[row, :4].tolist()
    task = reversal(6, seed=2)
    batch = task.batch(8, 4, random, "training")
    assert sorted(task.dictionary) == list(range(7, 13))
    for row in range(4):
        source = batch.tokens[row, :4]
        assert batch.tokens[row, 4] == 6
        assert batch.targets[row, 4:].tolist() == [task.dictionary[word] for word in source[::-1]]
        assert batch.tokens[row, 5:].tolist() == batch.targets[row, 4:-1].tolist()
        assert batch.counted[row].tolist() == [False] * 4 + [True] * 4


def test_units_of_text():
    letters = text("aab" * 10, "abz", vocabulary=3)
    assert letters.vocabulary == 3
    assert letters.validation.tolist() == [0, 1, 2]  # z shares the last id with nobody
    words = text("the cat the dog the cat", "the cow", unit="word", vocabulary=3)
    assert words.vocabulary == 3
    assert words.training.tolist() == [1, 0, 1, 2, 1, 0]  # dog and cow share the last id
    assert words.validation.tolist() == [1, 2]
    assert text("the cat the dog the cat", "the cow", unit="word").validation.tolist() == [2, 3]
    raw = text("é" * 10, "éa", unit="byte")
    assert raw.vocabulary == 256
    assert raw.validation.tolist() == [0xC3, 0xA9, ord("a")]


def test_corpora_by_path(tmp_path):
    wiki = tmp_path / "wikitext"
    wiki.mkdir()
    (wiki / "wiki.train.tokens").write_text("a b c a b c")
    (wiki / "wiki.valid.tokens").write_text("c b a")
    source = corpus(wiki, unit="word")
    assert (source.training.tolist(), source.validation.tolist()) == ([0, 1, 2, 0, 1, 2], [2, 1, 0])
    c4 = tmp_path / "c4"
    c4.mkdir()
    for name, part in (("c4-train.00000-of-00002", "ab"), ("c4-train.00001-of-00002", "ba"), ("c4-validation.0", "aa")):
        with gzip.open(c4 / f"{name}.json.gz", "wt") as stream:
            stream.write(json.dumps({"text": part}) + "\n")
    source = corpus(c4, characters=3)
    assert source.training.tolist() == [1, 2, 0, 2]  # "ab", a line break, "b" of the second file
    plain = tmp_path / "book.txt"
    plain.write_text("abcdefghij" * 3)
    assert (len(corpus(plain).training), len(corpus(plain).validation)) == (27, 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: corpus(path / "none.txt"), r"none.txt: no such file"),
        (
            lambda path: corpus(path),
            r"no training part; a file named wiki.train.\* or c4-train.\* or train.\* is wanted",
        ),
        (lambda path: corpus(path / "bytes.txt"), r"bytes.txt: not a text in UTF-8"),
        (lambda path: corpus(path / "lines.jsonl"), r"lines.jsonl: line 2: no JSON object with a text"),
        (lambda path: corpus(path / "lines.json.gz"), r"lines.json.gz: not packed by gzip, or broken"),
        (lambda path: corpus(path / "flipped.json.gz"), r"flipped.json.gz: not packed by gzip, or broken"),
        (lambda path: corpus(path / "lists.jsonl"), r"lists.jsonl: line 1: no JSON object with a text"),
        (lambda path: corpus(path / "empty.txt"), r"empty.txt: its training part has 0 characters"),
        (lambda path: text("abc", unit="line"), r"unit: 'line' is unknown"),
        (lambda path: tokens([0, 1, 7], 7), r"token ids: position 2: id 7 is outside 0 to 6"),
        (lambda path: tokens([0, 1], 7, validation=[0, -1]), r"validation: position 1: id -1 is outside 0 to 6"),
        (lambda path: tokens([0.5, 1.0]), r"token ids: token ids \(n,\), whole numbers, are wanted; float64 \(2,\)"),
        (lambda path: tokens(range(20)).check(16), r"validation part has 2 tokens; 16 positions want 17 or more"),
        (lambda path: copy_back(lag=4).check(4), r"a lag of 4 does not fit 4 positions"),
        (lambda path: reversal().check(5), r"5 positions are odd"),
        (lambda path: markov(1), r"vocabulary: 1 is too small"),
        (lambda path: markov(concentration=0), r"concentration: 0 is not positive"),
        (lambda path: markov(transitions=np.full((2, 2, 2), 0.4)), r"row \(0, 0\) sums to 0.8, not to 1"),
        (lambda path: markov(transitions=np.full((2, 2), 0.5)), r"shape \(2, 2\) is not \(V, V, V\)"),
        (
            lambda path: markov(transitions=np.broadcast_to(np.eye(2)[None], (2, 2, 2)).copy()),
            r"more than one distribution of pairs is stationary",
        ),
    ],
)
def test_bad_data_is_refused(tmp_path, make, message):
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\xfa")
    (tmp_path / "lines.jsonl").write_text('{"text": "good"}\n{"words": 1}\n')
    (tmp_path / "lines.json.gz").write_text("not packed")
    (tmp_path / "lists.jsonl").write_text('{"text": ["a", "b"]}\n')
    packed = bytearray(gzip.compress(json.dumps({"text": "abc" * 200}).encode()))
    packed[12:14] = b"\xff\xff"
    (tmp_path / "flipped.json.gz").write_bytes(packed)
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(ValueError, match=message):
        make(tmp_path)
