"""Outputs of pages are compared with those of their code, strictly where possible."""

import pytest
from pages import PAGES, ROOT, blocks, shell
from shown_output import MARK, agrees, differences, shown_outputs

RUN = """method   test accuracy  seconds
mlp      59.54 ± 2.02      12.8

wrote a/b.csv, 17,318 bytes
done in 3.1 s
"""


@pytest.mark.parametrize(
    ("shown", "exact"),
    [
        (RUN, True),
        ("…\nwrote a/b.csv, 17,318 bytes\n…", True),
        ("method …\nmlp 59.54 …\nwrote …\ndone in …", True),
        (RUN.replace("12.8", "2.8").replace("17,318", "209"), False),
        (RUN.replace("59.54", "57.1"), False),
    ],
)
def test_an_output_that_agrees(shown, exact):
    assert agrees(shown, RUN, exact=exact)


@pytest.mark.parametrize(
    ("shown", "exact"),
    [
        (RUN.replace("17,318", "17,319"), True),
        (RUN.replace("wrote", "writes"), False),
        (RUN.replace("59.54", "69.54"), False),
        (RUN.replace("done", "one more line\ndone"), False),
        (RUN.replace("wrote a/b.csv, 17,318 bytes\n", ""), False),
        (RUN.replace("seconds", "seconds  memory"), False),
    ],
)
def test_an_output_that_differs_is_noticed(shown, exact):
    assert not agrees(shown, RUN, exact=exact)


def test_numbers_are_equal_until_something_trains():
    before, after = "unalike measure graph", "unalike train graph linkx"
    printed = f"loss 2\n{MARK}\nloss 2\n{MARK}\n"
    shown = ["loss 1\n", "loss 1\n"]
    assert differences([before, after], shown, printed).count("the page shows") == 1
    assert not differences([after, before], shown, printed)


def test_text_directly_after_a_block_is_its_output(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```sh\na\n```\n\n```text\nA\n```\n\n```sh\nb\n```\n\nWords.\n\n```text\nB\n```\n",
        "utf-8",
    )
    assert shown_outputs(page, "sh") == ["A\n", None]


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.stem
)
def test_outputs_of_consoles_are_shown_only_where_they_are_compared(page):
    shown = [x for x in shown_outputs(page, "console") if x is not None]
    assert not shown or page.stem == "troubleshooting"


@pytest.mark.docs
def test_the_demo_of_the_readme(tmp_path):
    page = ROOT / "README.md"
    shown = shown_outputs(page, "sh")[0]
    assert blocks(page, "sh")[0].startswith("make demo") and shown
    done = shell("unalike demo", tmp_path)
    assert done.returncode == 0, done.stderr
    assert agrees(shown, done.stdout, exact=False), done.stdout
