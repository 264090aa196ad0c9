"""The script of docs/pyg.md gives the same with PyG's layers and with ours."""

import pytest
from pages import DOCS, blocks, python

THEIRS = "from torch_geometric.nn import GATConv, GCNConv\n"
OURS = "from unalike.pyg import GATConv, GCNConv\n"


def printed(script, folder):
    """The accuracy that the script prints for each network."""
    folder.mkdir()
    assert not python(script, folder)
    lines = (folder / "said.txt").read_text("utf-8").splitlines()
    return {name: float(accuracy) for name, accuracy in map(str.split, lines)}


@pytest.mark.docs
def test_one_changed_line_gives_the_same_accuracies(tmp_path):
    script, changed, *_ = blocks(DOCS / "pyg.md", "python")
    assert script.count(THEIRS) == 1 and changed == OURS
    theirs = printed(script, tmp_path / "theirs")
    ours = printed(script.replace(THEIRS, OURS), tmp_path / "ours")
    assert theirs.keys() == ours.keys() == {"GCN", "GAT"}
    for name, accuracy in theirs.items():
        assert accuracy > 0.3
        assert ours[name] == pytest.approx(accuracy, abs=0.03)
