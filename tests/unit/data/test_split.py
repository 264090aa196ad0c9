"""Splits: sizes, codes, and the draws of the paper's program."""

from hashlib import sha256

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unalike import Split, UserError, random_splits
from unalike.data.split import stack_codes, stratified_holdout

PENN94 = ["ddb27f360d47f0a4", "49471b8d86b4b7c4", "9a8f9f657a8c4417"]
"""The first digits of the sha256 of the orders in which its labelled nodes are dealt.

They are those of the stored splits that come with the paper.
"""


def order(split):
    return torch.cat([split.train, split.valid, split.test])


def test_draws_are_those_of_the_paper():
    splits = random_splits(torch.zeros(38_815, dtype=torch.int64), count=3)
    for split, digits in zip(splits, PENN94, strict=True):
        dealt = order(split).numpy().astype("<i8").tobytes()
        assert sha256(dealt).hexdigest()[:16] == digits
        sizes = (len(split.train), len(split.valid), len(split.test))
        assert sizes == (19_407, 9_703, 9_705)


@given(st.lists(st.integers(-1, 2), min_size=1, max_size=40), st.integers(0, 3))
def test_labelled_nodes_are_dealt_out_once(labels, seed):
    labels = torch.tensor(labels)
    for split in random_splits(labels, count=2, seed=seed):
        labelled = (labels >= 0).nonzero()[:, 0]
        assert torch.equal(order(split).sort()[0], labelled)
        assert len(split.train) == len(labelled) // 2
        assert len(split.valid) == len(labelled) // 4


def test_seeds_and_shares():
    labels = torch.zeros(100, dtype=torch.int64)
    (one,), (other,) = (random_splits(labels, count=1, seed=seed) for seed in (0, 1))
    assert not torch.equal(order(one), order(other))
    (again,) = random_splits(labels, count=1, seed=0)
    assert torch.equal(order(one), order(again))
    (split,) = random_splits(labels, count=1, train=0.6, valid=0.4)
    assert [len(split.train), len(split.valid), len(split.test)] == [60, 40, 0]


@pytest.mark.parametrize("shares", [(0, 0.5), (0.8, 0.3), (0.5, -0.1), (np.nan, 0.1)])
def test_shares_that_leave_no_split_are_refused(shares):
    train, valid = map(float, shares)
    with pytest.raises(UserError, match="are not possible"):
        random_splits(torch.zeros(9).long(), count=1, train=train, valid=valid)


@given(st.lists(st.integers(-1, 2), max_size=20))
def test_codes_and_back(codes):
    text = torch.tensor(codes, dtype=torch.int8)
    split = Split.from_codes(text)
    assert torch.equal(split.to_codes(len(codes)), text)


def test_all_splits_as_one_array():
    splits = random_splits(torch.zeros(8).long(), count=3)
    rows = torch.from_numpy(stack_codes(splits, 9))
    assert rows.shape == (3, 9)
    for split, row in zip(splits, rows, strict=True):
        assert torch.equal(Split.from_codes(row).train, split.train.sort()[0])
    assert stack_codes([], 9).shape == (0, 9)


def test_a_stratified_holdout_has_the_fraction_of_every_class():
    labels = torch.tensor([0] * 40 + [1] * 10 + [2] * 2 + [3] + [-1] * 7)
    ids = (labels >= 0).nonzero()[:, 0]
    generator = torch.Generator().manual_seed(0)
    rest, holdout = stratified_holdout(ids, labels, 0.2, generator)
    assert labels[holdout].bincount(minlength=4).tolist() == [8, 2, 1, 0]
    assert torch.cat([rest, holdout]).sort().values.equal(ids)
    assert not len(stratified_holdout(ids, labels, 0.0, generator)[1])
