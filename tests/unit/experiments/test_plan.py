"""A plan has every run of the recipes once, in groups of one shape."""

from dataclasses import replace

import pytest
from sweep_fixtures import recipe_text, small_plan, small_request, stored

from unalike import UserError
from unalike.experiments.plan import (
    SweepRequest,
    parse_filter,
    parse_overrides,
    plan_sweep,
)
from unalike.experiments.recipe import parse


def test_splits_and_configs_of_one_shape_share_a_stack(plan):
    assert len(plan.groups) == 3
    assert [len(group.runs) for group in plan.groups] == [12, 12, 12]
    for group in plan.groups:
        assert len({run.config.method.hidden for run in group.runs}) == 1
        assert {run.config.method.training.lr for run in group.runs} == {0.01, 0.05}
    assert len(set(plan.keys)) == len(plan.keys) == 36


def test_recipes_that_overlap_share_runs(tmp_path, plan):
    recipes = small_request(stored(tmp_path, name="other")).recipes
    again = SweepRequest(recipes=[*recipes, *recipes])
    assert len(plan_sweep(again).keys) == 36


def test_other_data_of_the_same_name_is_another_run(tmp_path, plan):
    (tmp_path / "more").mkdir()
    other = small_plan(stored(tmp_path / "more", nodes=70))
    assert other.groups[0].dataset.name == plan.groups[0].dataset.name
    assert not set(other.keys) & set(plan.keys)


def test_only_selects_configs(tmp_path):
    (recipe,) = small_request(stored(tmp_path)).recipes

    def count(*words):
        return len(
            plan_sweep(
                SweepRequest(recipes=[recipe], config_filter=parse_filter(words))
            ).keys
        )

    assert count("hidden=4") == 12
    assert count("hidden=4", "hidden=8", "lr=0.01") == 12
    assert count("hidden=4", "lr=1e-2", "inner_activation=false") == 6
    assert count("method=linkx") == 36
    assert count("method=link") == 0
    with pytest.raises(UserError, match="--only is 'linkx'; write NAME=VALUE"):
        parse_filter(["linkx"])


def test_options_of_set_replace_those_of_all_configs(tmp_path):
    (recipe,) = small_request(stored(tmp_path)).recipes
    options = parse_overrides(["epochs=2", "lr=0.5", "precision=bf16", "dropout=0"])
    plan = plan_sweep(SweepRequest(recipes=[recipe.with_overrides(options)]))
    assert len(plan.keys) == 9
    for group in plan.groups:
        for run in group.runs:
            training = run.config.method.training
            assert (training.epochs, training.lr) == (2, 0.5)
            assert training.precision == "bf16"
            assert run.config.method.dropout == 0
    cells = {k: replace(c, grid={"lr": [0.1, 0.2]}) for k, c in recipe.cells.items()}
    own = replace(recipe, cells=cells).with_overrides(options)
    (cell,) = own.cells.values()
    assert {one.method.training.lr for one in own.configs(cell)} == {0.5}
    with pytest.raises(UserError, match="--set is 'epochs'; write NAME=VALUE"):
        parse_overrides(["epochs"])


def test_cells_that_cannot_be_run_are_named(tmp_path):
    text = recipe_text(str(tmp_path / "nothing"))
    plan = plan_sweep(SweepRequest(recipes=[parse(text, "mine")]))
    assert not plan.groups
    (reason,) = plan.missing.values()
    assert "is not a stored graph" in reason


def test_quoted_cells_are_run_on_request(tmp_path):
    text = recipe_text(stored(tmp_path)).replace("mean", 'quoted = "them", mean')
    recipes = [parse(text, "mine")]
    assert not plan_sweep(SweepRequest(recipes=recipes)).keys
    assert len(plan_sweep(SweepRequest(recipes=recipes, quoted=True)).keys) == 36


def test_a_recipe_on_another_dataset(tmp_path):
    (recipe,) = small_request(stored(tmp_path)).recipes
    other = stored(tmp_path, nodes=70, name="other")
    plan = plan_sweep(SweepRequest(recipes=[recipe.on_datasets([other])]))
    assert {group.dataset.name for group in plan.groups} == {"other"}
    assert len(plan.keys) == 36


@pytest.mark.parametrize(
    ("word", "error"),
    [
        ("hidden=abc", "hidden is 'abc'; a whole number is needed"),
        ("hidden=2.5", "hidden is 2.5; a whole number is needed"),
        ("hidden=true", "hidden is True; a whole number is needed"),
        ("lr=fast", "lr is 'fast'; a number is needed"),
        ("lr=true", "lr is True; a number is needed"),
        ("precision=bf17", "No precision 'bf17'. Did you mean 'bf16'?"),
        ("hiden=4", "No option of linkx 'hiden'. Did you mean 'hidden'?"),
    ],
)
def test_a_wrong_value_of_set_is_refused_before_any_run(tmp_path, word, error):
    (recipe,) = small_request(stored(tmp_path)).recipes
    changed = recipe.with_overrides(parse_overrides([word]))
    plan = plan_sweep(SweepRequest(recipes=[changed]))
    (reason,) = plan.missing.values()
    assert not plan.keys
    assert error in reason


def test_values_of_set_get_the_type_of_their_option(tmp_path):
    (recipe,) = small_request(stored(tmp_path)).recipes
    words = ["lr=.5", "hidden=064", "dropout=0", "epochs=2.0"]
    changed = recipe.with_overrides(parse_overrides(words))
    plan = plan_sweep(SweepRequest(recipes=[changed]))
    options = plan.groups[0].first.to_dict["options"]
    found = [options[name] for name in ("lr", "hidden", "dropout", "epochs")]
    assert found == [0.5, 64, 0.0, 2]
    assert [*map(type, found)] == [float, int, float, int]


def test_a_recipe_sets_class_weights(tmp_path):
    text = recipe_text(stored(tmp_path)).replace(
        "mean = 70.0", 'class_weights = "balanced", mean = 70.0'
    )
    plan = plan_sweep(SweepRequest(recipes=[parse(text, "small")]))
    assert plan.groups[0].first.view.class_weights == "balanced"
    plain = plan_sweep(small_request(stored(tmp_path, name="again")))
    assert not set(plan.keys) & set(plain.keys)
