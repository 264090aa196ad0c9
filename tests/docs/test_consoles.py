"""The commands in console blocks run, on smaller graphs and for fewer epochs."""

import gzip
import json
import re
import shlex

import dump_files
import pytest
from fake_wiki import FakeWiki
from pages import PAGES, ROOT, blocks, commands, shell
from wiki_proxy import fronting

pytestmark = pytest.mark.docs

NOT_RUN = {
    "serve": "never ends; tests/cli/test_serve.py runs the server",
    "import duckdb": "reads a database; tests/unit/importing/test_frames.py writes one",
    "import s3": "needs a store of objects",
    "report --serve": "never ends; tests/unit/reports/test_site.py runs the server",
}
"""Commands of consoles that are only parsed, and why."""
ERRORS = {"troubleshooting"}
"""Pages whose commands fail, which test_troubleshooting.py runs."""
NEEDS_SHELL_BLOCKS = {"new-nodes", "own-graph"}
"""Pages whose consoles use files that their shell blocks write."""

STAND_INS = {
    "penn94": "chameleon",
    "penn94-twin": "chameleon-twin",
    "wiki-twin": "chameleon-twin",
    "arxiv-year": "chameleon",
    "arxiv-year-twin": "chameleon-twin",
    "cornell5": "chameleon",
    "twitch-gamers": "chameleon",
    "genius": "twitch-de",
    "my-graph/": "texas",
}
"""Small graphs instead of large ones, except in sweeps, which are planned only."""
SMALLER = [
    (
        r"^train (\S+) (?!label-propagation|views)(\S+)",
        r"train \1 \2 --epochs 1 --splits 0",
    ),
    (
        r"^train (\S+) views",
        r"train \1 views --views structure labels --rounds 1 --head trees --splits 0",
    ),
    (r"^(views .*)", r"\1 --views structure labels"),
    (r"^tune (\S+)(?=.*correct-and-smooth)", r"tune \1 --splits 0"),
    (r"^(tune .*--epochs) \d+", r"\1 1"),
    (r"mlp --hidden \d+$", "mlp --hidden 8 --epochs 1"),
    (r"^(train.*--hidden) \d+", r"\1 8"),
    (r"--trials \d+", "--trials 2"),
    (r"--bootstrap \d+", "--bootstrap 20"),
    (r"^(sweep .*?) --(?:results|jobs) \S+", r"\1"),
    (r"^(sweep .*?) --jobs \S+", r"\1"),
    (r"^(sweep \S+\.toml.*)", r"\1 --set epochs=1 hidden=4"),
    (r"^(sweep (?!.*(?:\.toml|--dry-run)).*)", r"\1 --dry-run"),
    (r"^(bench engine.*) --hidden \d+ \d+", r"\1 --hidden 4 --repeats 1 --stacks"),
    (r"^(bench methods.*) --repeats \d+", r"\1 --hidden 4 --repeats 1"),
    (r"^(bench scale)", r"\1 --hidden 4 --repeats 1 --rows 2000"),
    (r"^(bench scale.*) (--plot)", r"\1 --processes 1 \2"),
    (r"^(table (?:statistics|two-hop).*)", r"\1 --data nothing"),
    (r"^(crawl --api) \S+", r"\1 $WIKI --rate 0"),
]
"""What is written differently, so that a command ends within seconds."""


ARTICLES = {
    "Mathematics": ["Page 1", "Page 2"],
    "Hilbert space": ["Mathematics"],
    **{f"Page {n}": [f"Page {(n + k * k) % 30}" for k in range(5)] for n in range(30)},
}
"""A wiki instead of Wikipedia."""


def smaller(words):
    """A command with small graphs, few epochs and few trials."""
    planned_only = words[0] == "sweep"
    named = [word if planned_only else STAND_INS.get(word, word) for word in words]
    text = shlex.join(named)
    for form, new in SMALLER:
        text = re.sub(form, new, text)
    return text


def shown(page):
    """The commands in the consoles of a page."""
    return [words for code in blocks(page, "console") for words in commands(code)]


def not_run(words):
    return any(" ".join(words).startswith(start) for start in NOT_RUN)


def write_files(page, folder):
    """The files that commands name: recipes, word vectors, dumps, and some results."""
    for recipe in blocks(page, "toml"):
        for name in ("my.toml", "mine.toml"):
            (folder / name).write_text(recipe, "utf-8")
    for size in (100, 300):
        (folder / f"glove.6B.{size}d.txt").write_text("page 1 0 0\narticle 0 1 0\n")
    dump_files.write(ARTICLES, folder / "dumps")
    (folder / "results").mkdir()
    (folder / "build").mkdir()
    with gzip.open(ROOT / "results" / "runs.jsonl.gz", "rt", encoding="utf-8") as file:
        first, *lines = file
    part = [x for x in lines if json.loads(x)["dataset"] in ("texas", "cornell5")]
    with gzip.open(folder / "results" / "runs.jsonl.gz", "wt", encoding="utf-8") as new:
        new.writelines([first, *part])


RUN = [
    page
    for page in [*PAGES, ROOT / "README.md"]
    if shown(page) and page.stem not in ERRORS
]


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_console_blocks_run(page, tmp_path, data):
    write_files(page, tmp_path)
    before = blocks(page, "sh") if page.stem in NEEDS_SHELL_BLOCKS else []
    lines = [f"unalike {smaller(x)}" for x in shown(page) if not not_run(x)]
    script = "\n".join([*before, *dict.fromkeys(lines)])
    with fronting(FakeWiki(ARTICLES)) as wiki:
        known = {"UNALIKE_DATA": str(data), "WIKI": wiki.address}
        done = shell(f"set -x\n{script}", tmp_path, **known)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("start", NOT_RUN)
def test_commands_that_are_not_run_are_shown_somewhere(start):
    texts = [" ".join(words) for page in PAGES for words in shown(page)]
    assert any(text.startswith(start) for text in texts)


def test_a_console_command_that_fails_is_noticed(tmp_path):
    assert shell("unalike train no-such-graph linkx", tmp_path).returncode != 0
