"""Look-ups: what is text of a name that is not there."""

import pytest

from unalike import UserError
from unalike.errors import lookup

TABLE = {"linkx": 1, "link": 2}


def test_what_is_there_is_found():
    assert lookup(TABLE, "link", "method") == 2


def test_the_nearest_name_is_suggested():
    with pytest.raises(UserError) as text:
        lookup(TABLE, "linkxx", "method")
    assert str(text.value) == (
        "No method 'linkxx'. Did you mean 'linkx'? Known: linkx, link."
    )


def test_nothing_is_suggested_where_nothing_is_near():
    with pytest.raises(UserError) as text:
        lookup(TABLE, "gcn", "method")
    assert str(text.value) == "No method 'gcn'. Known: linkx, link."
