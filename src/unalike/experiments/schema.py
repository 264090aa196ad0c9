"""The schema: the tables of the database of results."""

import sqlalchemy as sql

METADATA = sql.MetaData()

DIGEST = sql.String(32)

RUNS = sql.Table(
    "runs",
    METADATA,
    sql.Column("key", DIGEST, primary_key=True),
    sql.Column("setting", DIGEST, nullable=False),
    sql.Column("shape", DIGEST, nullable=False, index=True),
    sql.Column("dataset", sql.Text, nullable=False),
    sql.Column("dataset_hash", DIGEST, nullable=False),
    sql.Column("method", sql.Text, nullable=False),
    sql.Column("options", sql.JSON, nullable=False),
    sql.Column("batching", sql.Text, nullable=False),
    sql.Column("view", sql.JSON, nullable=False),
    sql.Column("metric", sql.Text, nullable=False),
    sql.Column("split", sql.Integer, nullable=False),
    sql.Column("seed", sql.BigInteger, nullable=False),
    sql.Column("train", sql.Double, nullable=False),
    sql.Column("valid", sql.Double, nullable=False),
    sql.Column("test", sql.Double, nullable=False),
    sql.Column("best_epoch", sql.Integer),
    sql.Column("seconds", sql.Double, nullable=False),
    sql.Column("peak_memory_mb", sql.Double, nullable=False),
    sql.Column("device", sql.Text, nullable=False),
    sql.Column("versions", sql.JSON, nullable=False),
    sql.Column("commit", sql.Text, nullable=False),
    sql.Column("finished", sql.Double, nullable=False, index=True),
    sql.Index("by_setting", "dataset", "method", "setting"),
)
"""Every finished run, once: what it was, what came out, and where it was made."""

CURVES = sql.Table(
    "curves",
    METADATA,
    sql.Column("key", DIGEST, primary_key=True),
    sql.Column("curve", sql.LargeBinary, nullable=False),
)
"""How training went, apart from the rest so that a look at all runs is short."""

ANSWERS = sql.Table(
    "answers",
    METADATA,
    sql.Column("key", DIGEST, primary_key=True),
    sql.Column("answers", sql.JSON, nullable=False),
)
"""What was said of the test nodes; runs of older versions have none.

A table of its own: one that is missing is made when a database is opened.
"""

FAILURES = sql.Table(
    "failures",
    METADATA,
    sql.Column("key", DIGEST, primary_key=True),
    sql.Column("setting", DIGEST, nullable=False),
    sql.Column("dataset", sql.Text, nullable=False),
    sql.Column("method", sql.Text, nullable=False),
    sql.Column("split", sql.Integer, nullable=False),
    sql.Column("error", sql.Text, nullable=False),
    sql.Column("failed", sql.Double, nullable=False),
)
"""Runs that ended in an error; a sweep leaves them alone until told to retry."""

LEASES = sql.Table(
    "run_leases",
    METADATA,
    sql.Column("key", DIGEST, primary_key=True),
    sql.Column("worker", sql.Text, nullable=False),
    sql.Column("expires", sql.Double, nullable=False),
)
"""Who works on which runs, and until when nobody else may."""
