"""Documents of `--json` have the keys they had."""

import pyg_models as pyg
import pytest
from commands import document, documents, frozen, key_paths

assert pyg.Data  # imported with its warnings silenced, for `bench`


@pytest.fixture(scope="module")
def words_of(no_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("documents")
    return documents(no_data, folder)


def test_the_same_commands_are_frozen(words_of):
    assert set(words_of) == set(frozen("json_keys"))


@pytest.mark.parametrize("name", frozen("json_keys"))
@pytest.mark.long
def test_keys_of_a_json_document(words_of, name):
    """Keys may be added, but none is lost."""
    found = key_paths(document(*words_of[name]))
    assert [key for key in frozen("json_keys")[name] if key not in found] == []
