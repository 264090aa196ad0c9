"""Columns: which column of a table is meant, guessed where it is not told."""

from __future__ import annotations

from unalike.errors import UserError, did_you_mean
from unalike.importing.batch import Table
from unalike.importing.ids import IdIndex

ENDS = {
    "source": "target",
    "src": "dst",
    "from": "to",
    "u": "v",
    "id1": "id2",
    "id_1": "id_2",
    "node1": "node2",
    "node_1": "node_2",
    "source_id": "target_id",
    "src_id": "dst_id",
    "from_id": "to_id",
    "from_node_id": "to_node_id",
    "fromnodeid": "tonodeid",
    "node_from": "node_to",
    "user1": "user2",
    "head": "tail",
    "citing": "cited",
    "start": "end",
}
"""Names that tell the source of an edge, each with the name of its target."""

IDS = ("id", "node", "node_id", "nodeid", "name", "new_id")


def require(table: Table, name: str) -> str:
    """The column of that name, or an error that tells the nearest and all there are."""
    if name in table.columns:
        return name
    hint = did_you_mean(name, table.columns)
    raise UserError(
        f"{table.path} has no column '{name}'.{hint} "
        f"Its columns: {', '.join(table.columns)}."
    )


def edge_ends(table: Table, source: str | None, target: str | None) -> tuple[str, str]:
    """The columns that hold the two ends of an edge."""
    if len(table.columns) < 2:
        raise UserError(
            f"{table.path} has one column only, '{table.columns[0]}'; "
            "an edge needs two."
        )
    if source is None and target is None:
        return _guess(table)
    if source is None or target is None:
        told = require(table, source or target or "")
        other = _partner(table, told)
        return (told, other) if target is None else (other, told)
    return require(table, source), require(table, target)


def check_header(table: Table, columns: tuple[str, str], index: IdIndex) -> None:
    """Refuse to lose an edge: names of columns that are ids of nodes are a row."""
    for column in columns if table.doubtful else ():
        if index.holds(column):
            raise UserError(
                f"{table.path}: the first line names a column '{column}', which is a "
                "node too; --header no reads that line as a row, yes as names."
            )


def node_id(table: Table, told: str | None) -> str:
    """The column that holds the id of a node."""
    if told is not None:
        return require(table, told)
    small = {name.lower(): name for name in reversed(table.columns)}
    return next((small[name] for name in IDS if name in small), table.columns[0])


def _guess(table: Table) -> tuple[str, str]:
    small = {name.lower(): name for name in reversed(table.columns)}
    for source, target in ENDS.items():
        if source in small and target in small:
            return small[source], small[target]
    return table.columns[0], table.columns[1]


def _partner(table: Table, told: str) -> str:
    pairs = ENDS | {target: source for source, target in ENDS.items()}
    others = {name.lower(): name for name in table.columns if name != told}
    return others.get(pairs.get(told.lower(), ""), next(iter(others.values())))
