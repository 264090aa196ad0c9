"""What every test gets: one thread, no leftovers, shapes checked at run time."""

import os
import signal
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch is loaded

import jaxtyping
import pytest
import torch

# Whoever runs the tests may have set some; no test depends on them.
for name in [name for name in os.environ if name.startswith("UNALIKE_")]:
    del os.environ[name]
# Triton reads the source of GPU kernels, which must not be wrapped.
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

DATA = Path(__file__).parents[2] / "shared" / "data"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--data", type=Path, default=DATA, help=f"folder of real graphs: {DATA}"
    )
    parser.addoption("--seed", type=int, default=0, help="first seed of fault tests")
    parser.addoption("--outcomes", type=Path, help="file for outcomes of fault tests")


@pytest.fixture(autouse=True, scope="session")
def no_compilation_notice() -> None:
    """Which test compiles something depends on what is cached."""
    from unalike.data import numba_utils

    numba_utils.NOTICE.given = True


@pytest.fixture
def data(request: pytest.FixtureRequest) -> Path:
    """The folder of real graphs; tests that need it are skipped where it is not."""
    folder = request.config.getoption("data")
    if not folder.is_dir():
        pytest.skip(f"no real graphs at {folder}; --data names their folder")
    return folder


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of this run of the tests share."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
