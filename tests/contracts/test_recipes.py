"""Recipes hold what the paper prints, and ask for what the methods have."""

import csv
import re
from pathlib import Path

import pytest

from unalike import DATASETS, UserError
from unalike.experiments.recipe import (
    SearchSpace,
    find_recipes,
    grid_size,
    paper_tables,
    parse,
)
from unalike.reports.result_tables import highlight_best
from unalike.reports.tables import ScoreCell
from unalike.views import OPTIONAL_VIEWS, VIEWS

PRINTED = Path(__file__).parents[1] / "printed"
TABLES = paper_tables()
NAMES = {
    "full-batch": "results_fullbatch",
    "minibatch": "minibatch",
    "gcn-minibatch": "gcn_minibatch",
    "ablation": "ablation",
    "arxiv-coarse-fine": "arxiv_coarse_fine",
    "prior-datasets": "prior_datasets",
    "homophilous": "homophilous_results",
}
OURS = {"since-2021", "state-of-the-art", "views-ablation"}
"""Tables that are not in the paper."""
RECIPES = {
    recipe.name: recipe for table in TABLES.values() for recipe in table.recipes()
}
every_table = pytest.mark.parametrize("table", NAMES)


def printed(table):
    with (PRINTED / f"table_{NAMES[table]}.csv").open() as file:
        return list(csv.DictReader(file))


def number(text):
    return float(text) if text else None


def test_there_is_a_recipe_for_every_table():
    assert set(TABLES) == set(NAMES) | OURS


@every_table
def test_every_printed_number_is_in_exactly_one_cell(table):
    wanted = {}
    for line in printed(table):
        cell = wanted.setdefault((line["method"], line["dataset"].lower()), {})
        if line["metric"] == "relative_error_percent":
            cell["relative_error"] = number(line["mean"])
        else:
            flags = line["oom_or_timeout_flag"].split(";")
            limits = [{"M": "memory", "T": "time"}.get(flag) for flag in flags]
            cell["mean"], cell["std"] = number(line["mean"]), number(line["std"])
            cell["limit"] = next(filter(None, limits), None)
            disputed = line["metric"] == "accuracy_by_code_rocauc_by_paper"
            cell["metric"] = "accuracy" if disputed else None
    rows = TABLES[table].recipes()
    found = {
        (recipe.row, column): {
            "mean": cell.mean,
            "std": cell.std,
            "limit": cell.limit,
            "metric": cell.view.metric,
            **({"relative_error": cell.relative_error} if cell.relative_error else {}),
        }
        for recipe in rows
        for column, cell in recipe.cells.items()
    }
    assert found == wanted
    assert len({recipe.row for recipe in rows}) == len(rows)


SHADED_OTHERWISE = {("prior-datasets", "LINKX", "cornell")}
"""Within a standard deviation of the best, and yet not shaded in the paper."""


@every_table
def test_the_rule_of_shading_is_that_of_the_paper(table):
    with (PRINTED / "highlighted_cells.csv").open() as file:
        wanted = {
            (table, line["method"], line["dataset"].lower())
            for line in csv.DictReader(file)
            if line["table"] == NAMES[table]
        }
    rows = {
        recipe.row: {
            column: ScoreCell(printed_mean=cell.mean, printed_std=cell.std)
            for column, cell in recipe.cells.items()
        }
        for recipe in TABLES[table].recipes()
    }
    found = {
        (table, row, column)
        for row, cells in highlight_best(rows, TABLES[table].shaded).items()
        for column, cell in cells.items()
        if cell.highlighted
    }
    assert found ^ wanted == {cell for cell in SHADED_OTHERWISE if cell[0] == table}


def lowest(space):
    """The first value of each list, the lowest of each range."""
    firsts = {name: values[0] for name, values in space.searched.items()}
    return {
        name: value["low"] if isinstance(value, dict) else value
        for name, value in firsts.items()
    }


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.long
def test_every_option_is_one_of_the_method(name):
    recipe = RECIPES[name]
    if recipe.method is None:
        assert all(cell.quoted or not cell.mean for cell in recipe.cells.values())
        return
    assert recipe.is_implemented
    for variant in ("", *recipe.variants):
        for cell in recipe.cells.values():
            space = SearchSpace.of(recipe, cell, variant)
            if space.has_range:
                assert recipe.config(cell, {**space.fixed, **lowest(space)}).hash
                continue
            configs = list(recipe.configs(cell, variant))
            assert len({config.hash for config in configs}) == len(configs) > 0


def test_the_grids_have_as_many_settings_as_the_paper_says():
    sizes = {
        "full-batch/mlp": 10,
        "full-batch/label-propagation-2-hop": 7,
        "full-batch/link": 3,
        "full-batch/sgc-1-hop": 1,
        "full-batch/gcn": 15,
        "full-batch/gat": 36,
        "full-batch/gcn-jk": 30,
        "full-batch/gat-jk": 72,
        "full-batch/appnp": 60,
        "full-batch/gpr-gnn": 15,
        "full-batch/h2gcn": 16,
        "full-batch/mixhop": 6,
        "full-batch/gcnii": 45,
        "full-batch/linkx": 12,
        "ablation/link-concat": 30,
        "prior-datasets/linkx": 384,
        "minibatch/mixhop-saint-walks": 4,
        "minibatch/gcn-jk-clusters": 4,
    }
    assert {name: grid_size(RECIPES[name]) for name in sizes} == sizes


def test_large_graphs_have_smaller_grids():
    for name, sizes in {"gcn": (15, 12), "gat-jk": (72, 36)}.items():
        recipe = RECIPES[f"full-batch/{name}"]
        cells = (recipe.cells["penn94"], recipe.cells["pokec"])
        grids = [recipe.grids_of(cell)[0].values() for cell in cells]
        products = []
        for grid in grids:
            count = 1
            for values in grid:
                count *= len(values)
            products.append(count)
        assert tuple(products) == sizes


def test_what_the_paper_did_not_run_itself_is_quoted():
    ours = {
        (name, column)
        for name, recipe in RECIPES.items()
        if name.startswith(("prior", "homophilous"))
        for column, cell in recipe.cells.items()
        if not cell.quoted
    }
    six = ("texas", "wisconsin", "actor", "squirrel", "chameleon", "cornell")
    assert ours == {
        *(("prior-datasets/linkx", name) for name in six),
        *(("prior-datasets/gpr-gnn", name) for name in six),
        ("prior-datasets/gcnii", "actor"),
        ("prior-datasets/gcnii", "squirrel"),
        *(("homophilous/linkx", name) for name in ("cora", "citeseer", "pubmed")),
    }


def test_the_appendix_has_other_grids():
    assert {name for name, recipe in RECIPES.items() if recipe.variants} == {
        "full-batch/sgc-1-hop",
        "full-batch/sgc-2-hop",
        "full-batch/gpr-gnn",
        "prior-datasets/gpr-gnn",
        "ablation/link-concat",
    }
    recipe = RECIPES["full-batch/gpr-gnn"]
    cell = recipe.cells["penn94"]
    assert len(list(recipe.configs(cell, "appendix"))) == 60


def test_recipes_are_found_by_table_row_and_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('method = "link"\n[cells]\ntexas = {}\n')
    found = find_recipes(["ablation", "ablation/mlp", "homophilous/linkx", str(path)])
    names = [recipe.name for recipe in found]
    assert names[-2:] == ["homophilous/linkx", "mine"]
    assert len(names) == 6


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("full-bach", "Did you mean 'full-batch'?"),
        ("full-batch/linx", "Did you mean 'full-batch/link"),
        ("nowhere.toml", "nowhere.toml: No such file"),
    ],
)
def test_unknown_recipes(name, message):
    with pytest.raises(UserError, match=message.replace("?", r"\?")):
        find_recipes([name])


@pytest.mark.parametrize(
    "text",
    [
        "[cells",
        'method = "link"',
        "method = 3\n[cells]\ntexas = {grit = 3}",
        "cells = 3",
    ],
)
def test_what_is_not_a_recipe(text):
    with pytest.raises(UserError, match="mine is not a recipe"):
        parse(text, "mine")


def test_an_unknown_option_is_an_error():
    recipe = parse('method = "link"\ngrid = {hiden = 3}\n[cells]\ntexas = {}', "mine")
    with pytest.raises(UserError, match="No option of link 'hiden'"):
        list(recipe.configs(recipe.cells["texas"]))


@pytest.mark.parametrize("table", sorted(OURS))
def test_methods_of_our_tables_have_the_same_columns_of_known_datasets(table):
    first, *others = (list(recipe.cells) for recipe in TABLES[table].recipes())
    assert all(columns == first for columns in others)
    for name in first:
        assert name.removesuffix("-directed") in DATASETS


def test_every_published_number_of_ours_has_a_mark_of_trust():
    cells = RECIPES["state-of-the-art/published"].cells
    for name, cell in cells.items():
        assert cell.mean is None or re.search(r"\[[RVPSLM]\] F", cell.quoted), name


def test_the_ablation_of_views_leaves_out_one_group_at_a_time():
    recipes = {recipe.row: recipe for recipe in TABLES["views-ablation"].recipes()}
    groups = {row: set(recipe.grids[0]["views"][0]) for row, recipe in recipes.items()}
    full = groups.pop("all")
    assert full == set(VIEWS) - set(OPTIONAL_VIEWS)
    assert groups == {f"without {name}": full - {name} for name in full}
