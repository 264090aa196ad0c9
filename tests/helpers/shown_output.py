"""Compare the output that a page shows with what its code prints.

A block of text directly after a block of code is its output. Lines and words must
agree; spaces and empty lines do not count. "…" stands for the rest of a line, and alone
on a line for any lines.

Until something on the page trains, numbers must be equal. After that they depend on
the CPU: only their places must agree, and a score may differ by a few points.
"""

import re

BLOCK = re.compile(r"^ *```(\w+)[^\n]*\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
SCORE = r"(?<=accuracy )\d[\d.]*|\d[\d.]*(?= ±)"
NUMBER = r"[+-]?\d[\d,]*(?:\.\d+)?"
TOKEN = re.compile(rf"(?P<score>{SCORE})|(?P<number>{NUMBER})|(?P<rest>…)|.", re.DOTALL)
TRAINS = re.compile(r"\bunalike[ .](train|tune|sweep|advise|demo|run)\b|NodeClassifier")
POINTS = 5.0
"""How much a score may differ on another CPU."""
MARK = "end of a block of code"
"""Printed after each block, so that the output of a script can be divided."""


def shown_outputs(page, language):
    """The output shown directly after each block of a language; None without one."""
    text = page.read_text("utf-8")
    found = [*BLOCK.finditer(text)]
    following = [*found, None][1:]
    return [
        output[2]
        if output
        and output[1] == "text"
        and not text[code.end() : output.start()].strip()
        else None
        for code, output in zip(found, following, strict=True)
        if code[1] == language
    ]


def differences(blocks, shown, printed):
    """What a page shows and its script, with marks after blocks, does not print."""
    outputs = printed.split(f"{MARK}\n")[: len(blocks)]
    trained, found = False, []
    for code, text, output in zip(blocks, shown, outputs, strict=True):
        trained = trained or bool(TRAINS.search(code))
        if text is not None and not agrees(text, output, exact=not trained):
            found.append(f"the page shows\n{text}\nand the run printed\n{output}")
    return "\n".join(found)


def agrees(shown, printed, *, exact):
    """Is this the output, up to what "…" stands for and, unless exact, numbers?"""
    lines = [pattern(line, exact) for line in folded(shown)]
    match = re.fullmatch("".join(lines), "".join(f"{x}\n" for x in folded(printed)))
    if match is None or exact:
        return match is not None
    scores = [
        x["score"] for x in TOKEN.finditer("\n".join(folded(shown))) if x["score"]
    ]
    pairs = zip(scores, match.groups(), strict=True)
    return all(abs(float(one) - float(other)) <= POINTS for one, other in pairs)


def folded(text):
    """The lines of a text that are not empty, with single spaces."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def pattern(line, exact):
    """A regular expression for a line of output and its end."""
    if line == "…":
        return r"(?:.*\n)*?"
    forms = {"score": rf"({SCORE})", "number": NUMBER, "rest": ".*"}
    if exact:
        forms = {"rest": ".*"}
    return (
        "".join(forms.get(x.lastgroup) or re.escape(x[0]) for x in TOKEN.finditer(line))
        + r"\n"
    )
