"""An agenda has every run that recipes ask for once, in bundles of one shape."""

from dataclasses import replace

import pytest
from sweeps import recipe_text, small_agenda, small_order, stored

from unalike import UserError
from unalike.experiments.plan import (
    SweepRequest,
    parse_filter,
    parse_overrides,
    plan_sweep,
)
from unalike.experiments.recipe import parse


def test_splits_and_settings_of_one_shape_share_a_stack(agenda):
    assert len(agenda.bundles) == 3
    assert [len(bundle.runs) for bundle in agenda.bundles] == [12, 12, 12]
    for bundle in agenda.bundles:
        assert len({run.setting.method.hidden for run in bundle.runs}) == 1
        assert {run.setting.method.training.lr for run in bundle.runs} == {0.01, 0.05}
    assert len(set(agenda.keys)) == len(agenda.keys) == 36


def test_recipes_that_overlap_ask_for_a_run_once(tmp_path, agenda):
    recipes = small_order(stored(tmp_path, name="other")).recipes
    again = SweepRequest(recipes=[*recipes, *recipes])
    assert len(plan_sweep(again).keys) == 36


def test_other_data_of_the_same_name_is_another_run(tmp_path, agenda):
    (tmp_path / "more").mkdir()
    other = small_agenda(stored(tmp_path / "more", nodes=70))
    assert other.bundles[0].subject.name == agenda.bundles[0].subject.name
    assert not set(other.keys) & set(agenda.keys)


def test_only_what_is_asked_for(tmp_path):
    (recipe,) = small_order(stored(tmp_path)).recipes

    def kept(*words):
        return len(
            plan_sweep(SweepRequest(recipes=[recipe], chosen=parse_filter(words))).keys
        )

    assert kept("hidden=4") == 12
    assert kept("hidden=4", "hidden=8", "lr=0.01") == 12
    assert kept("method=linkx") == 36
    assert kept("method=link") == 0
    with pytest.raises(UserError, match="--only is 'linkx'; write NAME=VALUE"):
        parse_filter(["linkx"])


def test_options_that_are_set_are_those_of_every_setting(tmp_path):
    (recipe,) = small_order(stored(tmp_path)).recipes
    told = parse_overrides(["epochs=2", "lr=0.5", "precision=bf16", "dropout=0"])
    agenda = plan_sweep(SweepRequest(recipes=[recipe.with_overrides(told)]))
    assert len(agenda.keys) == 9
    for bundle in agenda.bundles:
        for run in bundle.runs:
            training = run.setting.method.training
            assert (training.epochs, training.lr) == (2, 0.5)
            assert training.precision == "bf16"
            assert run.setting.method.dropout == 0
    cells = {k: replace(c, grid={"lr": [0.1, 0.2]}) for k, c in recipe.cells.items()}
    own = replace(recipe, cells=cells).with_overrides(told)
    (cell,) = own.cells.values()
    assert {one.method.training.lr for one in own.settings(cell)} == {0.5}
    with pytest.raises(UserError, match="--set is 'epochs'; write NAME=VALUE"):
        parse_overrides(["epochs"])


def test_cells_that_cannot_be_run_are_named(tmp_path):
    text = recipe_text(str(tmp_path / "nothing"))
    agenda = plan_sweep(SweepRequest(recipes=[parse(text, "mine")]))
    assert not agenda.bundles
    (why,) = agenda.missing.values()
    assert "is not a stored graph" in why


def test_quoted_cells_are_run_when_asked_for(tmp_path):
    text = recipe_text(stored(tmp_path)).replace("mean", 'quoted = "them", mean')
    recipes = [parse(text, "mine")]
    assert not plan_sweep(SweepRequest(recipes=recipes)).keys
    assert len(plan_sweep(SweepRequest(recipes=recipes, quoted=True)).keys) == 36


def test_a_recipe_on_another_dataset(tmp_path):
    (recipe,) = small_order(stored(tmp_path)).recipes
    other = stored(tmp_path, nodes=70, name="other")
    agenda = plan_sweep(SweepRequest(recipes=[recipe.on([other])]))
    assert {bundle.subject.name for bundle in agenda.bundles} == {"other"}
    assert len(agenda.keys) == 36
