"""Options and fixtures of all tests."""

import os
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The same examples in every run, however long a busy machine takes over one.
settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")


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


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket of an S3 service on this machine, which the environment gives the address of."""
    import fsspec
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in (("ENDPOINT_URL", f"http://{host}:{port}"), ("DEFAULT_REGION", "us-east-1")):
        monkeypatch.setenv(f"AWS_{name}", value)
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.setenv(f"AWS_{name}", "test")
    name = f"bucket-{uuid.uuid4().hex[:8]}"  # the service's memory is this process's, and lasts
    fsspec.filesystem("s3").mkdir(name)
    yield name
    server.stop()
    fsspec.filesystem("s3").clear_instance_cache()
