"""Options and fixtures of all tests."""

import os
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-goldens", action="store_true", help="write the golden files from the code, then compare"
    )


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
