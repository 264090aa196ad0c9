"""Cases to grade: scores, labels and weights, for tests of metrics."""

import torch
from hypothesis import assume
from hypothesis import strategies as st


@st.composite
def graded(draw, classes, fewest=1):
    """Scores with many ties, labels of which some class may be absent, weights."""
    nodes = draw(st.integers(fewest, 12))
    scores = st.lists(
        st.sampled_from([-1.0, 0.0, 0.25, 3.0]), min_size=classes, max_size=classes
    )
    columns = (scores, st.integers(0, classes - 1), st.sampled_from([0.0, 1.0, 2.5]))
    rows = draw(st.lists(st.tuples(*columns), min_size=nodes, max_size=nodes))
    found, labels, weight = zip(*rows, strict=True)
    assume(sum(weight) > 0)
    return torch.tensor(found), torch.tensor(labels), torch.tensor(weight)
