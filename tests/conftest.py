"""What every test gets: one thread, no leftovers, shapes checked at run time."""

import os
import signal
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch is loaded

import jaxtyping
import pytest
import torch

# Triton reads the source of programs for a card, which must not be wrapped.
if find_spec("beartype") and not torch.cuda.is_available():
    jaxtyping.install_import_hook("unalike", "beartype.beartype").__enter__()
if find_spec("hypothesis"):
    from hypothesis import settings

    # A busy machine is no fault, and the first example may wait for the compiler.
    settings.register_profile("patient", deadline=None)
    settings.load_profile("patient")
torch.set_num_threads(1)
# A shell lets what it runs in the background ignore Ctrl-C, and so would its children.
signal.signal(signal.SIGINT, signal.default_int_handler)

DATA = Path(
    os.environ.get("UNALIKE_DATA", Path(__file__).parents[2] / "shared" / "data")
)


@pytest.fixture
def data() -> Path:
    """The folder of real graphs; tests that need it are skipped where it is not."""
    if not DATA.is_dir():
        pytest.skip(f"no real graphs at {DATA}; set UNALIKE_DATA to their folder")
    return DATA
