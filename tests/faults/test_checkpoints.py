"""Damaged checkpoints are refused, or training resumes to the same scores."""

import contextlib
import json
import shutil

import torch
from damage import damage
from graphs import suiting, tasks_of

import unalike
from unalike import UserError
from unalike.experiments.correct_and_smooth_search import read_values
from unalike.methods.base import train_stacks
from unalike.training.checkpoint import Checkpoint


def test_a_damaged_checkpoint_is_refused_or_resumed_to_the_same_scores(tmp_path, some):
    method = unalike.LINK(training=unalike.Training(epochs=2))
    tasks = tasks_of(suiting(nodes=20), 1)
    keep = Checkpoint(tmp_path / "state", "runs", every=0.0, lasting=True)
    (expected,) = train_stacks([method], tasks, checkpoint=keep)
    files = [path for path in (tmp_path / "state.0").rglob("*") if path.is_file()]
    whole = {path: path.read_bytes() for path in files}
    for rng in some:
        file = rng.choice(files)
        file.write_bytes(damage(whole[file], rng))
        with contextlib.suppress(UserError):
            (found,) = train_stacks([method], tasks, checkpoint=keep)
            assert torch.equal(found.scores, expected.scores), file
        shutil.rmtree(tmp_path / "state.0")
        for path, content in whole.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def test_damaged_trials_of_a_search_are_refused_or_read(tmp_path, cases):
    path = tmp_path / "judged.jsonl"
    lines = [
        json.dumps([f'{{"alpha": 0.{number}}}', number / 7]) for number in range(9)
    ]
    whole = "\n".join([*lines, ""]).encode()
    for rng in cases:
        path.write_bytes(damage(whole, rng))
        with contextlib.suppress(UserError):
            assert len(list(read_values(path))) <= 9
