"""Options of dataclasses, and options that are added to them later."""

import subprocess
import sys
from dataclasses import dataclass

import pytest

from unalike import GCN, LINKX, UserError
from unalike.experiments.config import Config, build_method
from unalike.experiments.result import option_flags
from unalike.options import later_option, options_of, with_options


@dataclass(frozen=True, kw_only=True)
class Settings:
    width: int = 3
    added: bool = later_option(False)
    rate: float = later_option(0.5)


def test_an_option_that_is_added_later_changes_the_keys_of_stored_runs():
    assert options_of(Settings()) == {"width": 3}
    assert options_of(Settings(added=True)) == {"width": 3, "added": True}
    everything = {"width": 3, "added": False, "rate": 0.5}
    assert options_of(Settings(), omit=False) == everything


def test_an_option_that_was_added_later_is_set_by_name():
    for value in (True, False):
        assert with_options(Settings(), {"added": value}, "it") == Settings(added=value)
    with pytest.raises(UserError, match="No option of it 'addd'"):
        with_options(Settings(), {"addd": True}, "it")


def test_flags_of_options_that_were_added_later():
    assert option_flags(Settings(), {"width": 3}) == ["--width", "3"]
    options = options_of(Settings(added=True, rate=0.1))
    flags = ["--width", "3", "--added", "--rate", "0.1"]
    assert option_flags(Settings(), options) == flags


@pytest.mark.parametrize("name", ["gcn", "gat", "gcn-jk", "gat-jk"])
def test_the_bias_before_batch_norm_is_an_option_that_was_added_later(name):
    usual, biased = (build_method(name, {"conv_bias": use}) for use in (False, True))
    assert "conv_bias" not in Config(usual).to_dict["options"]
    assert Config(biased).to_dict["options"]["conv_bias"] is True
    assert Config(usual).hash != Config(biased).hash
    assert Config(biased).describe() == "conv_bias=True"
    assert build_method(name, options_of(biased)) == biased
    assert Config(GCN()).hash == Config(GCN(conv_bias=False)).hash


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"hidden": 0}, "--hidden is 0; it must be at least 1."),
        ({"hidden": 10**6}, "--hidden is 1000000; it must be at most 65536."),
        ({"dropout": float("nan")}, "--dropout is nan; a finite number is needed."),
        ({"lr": float("inf")}, "--lr is inf; a finite number is needed."),
        ({"weight_decay": -1.0}, "--weight-decay is -1.0; it must be at least 0."),
    ],
)
def test_ranges_hold_for_recipes_and_python_alike(options, line):
    with pytest.raises(UserError) as caught:
        with_options(LINKX(), options, "linkx")
    assert str(caught.value) == line


WORDS = """
from unalike import METHODS, ImportOptions, Training, UserError
from unalike.options import words_of
from unalike.samplers import SAMPLERS

refused = 0
for kind in (*METHODS.values(), *SAMPLERS.values(), ImportOptions, Training):
    for option in words_of(kind):
        try:
            kind(**{option: "nonsense"})
            print(kind, option)
        except UserError as error:
            assert f"No {option} 'nonsense'" in str(error), error
            refused += 1
assert refused > 20, refused
"""


def test_options_of_words_refuse_other_words():
    # In another process: here the checks of types in the tests come first.
    command = [sys.executable, "-c", WORDS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == done.stderr == ""
