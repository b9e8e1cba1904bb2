"""Options and fixtures of all tests."""

import os
import signal
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-goldens", action="store_true", help="write the golden files from the code, then compare"
    )


def pytest_configure(config: pytest.Config) -> None:
    # A shell that starts the tests in the background ignores interrupts, and so would all that they start.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def update_goldens(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-goldens"))


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Folder of the real data sets; tests that need it are skipped where it is not laid out."""
    folder = os.environ.get("GEOKFP_TEST_DATA")
    if not folder:
        pytest.skip("GEOKFP_TEST_DATA is not set")
    return Path(folder)
