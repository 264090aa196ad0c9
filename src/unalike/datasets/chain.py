"""The chain: one stream of random numbers from which the paper's splits were drawn."""

import numpy as np

CHAIN = {
    "penn94": 38_815,
    "twitch-de": 9_498,
    "arxiv-year": 169_343,
    "deezer-europe": 28_281,
    "pokec": 1_632_640,
    "snap-patents": 2_923_922,
    "yelp-chi": 45_954,
}
"""Labelled nodes of each dataset, in the order in which their splits were drawn."""

SPLITS = 5


def permutations(name: str) -> list[np.ndarray]:
    """The orders in which the labelled nodes of a dataset are dealt out.

    Numpy's legacy generator was seeded once with 0 and gave five permutations for each
    dataset in turn, so that those of all earlier datasets have to be drawn as well.
    """
    draw = np.random.RandomState(0)
    for member, labelled in CHAIN.items():
        orders = [draw.permutation(labelled) for _ in range(SPLITS)]
        if member == name:
            return orders
    raise KeyError(name)
