"""Damaged bytes and files, and checks of what commands say about them."""

import random
import sys

from unalike.cli.main import main


def damage(content: bytes, rng: random.Random) -> bytes:
    """The bytes with a flipped bit, a hole, noise, or cut."""
    data, place = bytearray(content), rng.randrange(len(content))
    kind = rng.choice(["bit", "byte", "cut", "zeros", "noise"])
    if kind == "bit":
        data[place] ^= 1 << rng.randrange(8)
    elif kind == "byte":
        data[place] = rng.randrange(256)
    elif kind == "cut":
        del data[place:]
    else:
        length = min(16, len(data) - place)
        data[place : place + length] = (
            bytes(length) if kind == "zeros" else rng.randbytes(length)
        )
    return bytes(data)


def run_command(words: list[str], capsys) -> tuple[int, str]:
    """Status and output of a command, which must end in at most one line of error."""
    # As the standard error of Python, which writes what is no UTF-8 as escapes.
    sys.stderr.reconfigure(errors="backslashreplace")
    status = main(words)
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if "compiling once" not in line]
    errors = [line for line in lines if line.startswith("error: ")]
    assert status in (0, 1, 2), (words, err)
    assert len(errors) <= 1, (words, err)
    assert status != 1 or len(errors) == 1, (words, err)
    assert "Traceback" not in err, (words, err)
    return status, out
