"""Fixtures that every test may use."""

from __future__ import annotations

import functools
import gc
import os
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import certifi

# Before torch is imported anywhere: idle OpenMP workers must sleep, or two jobs on two cores starve each other, and
# nothing in a test may reach for a model hub.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
if "PYTEST_XDIST_WORKER" in os.environ:  # there is one worker a core
    os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# PyTorch's stores look up the name of every address they talk to, and would wait five seconds and more where no name
# server answers.
os.environ.setdefault("RES_OPTIONS", "timeout:1 attempts:1")

# What a person or a CI has set for other purposes must not change what a test sees.
for _name in ("FORCE_COLOR", "NO_COLOR", "GITHUB_ACTIONS", "PY_COLORS", "COLUMNS", "MUARL_DEBUG", "MUARL_DATA"):
    os.environ.pop(_name, None)
for _name in ("OPENAI_API_KEY_HOST", "OPENAI_BASE_URL"):
    os.environ.pop(_name, None)

# Nor does a test leave anything in a person's home.
_STATE = tempfile.TemporaryDirectory(prefix="muarl-tests-")
os.environ["XDG_STATE_HOME"] = _STATE.name

# Each HTTP client reads all certificates of authorities, which takes 30 ms and more; no test asks a server on the web.
_FIRST = Path(certifi.where()).read_text().partition("-----END CERTIFICATE-----")
_CERTIFICATE = Path(_STATE.name) / "certificate.pem"
_CERTIFICATE.write_text("".join(_FIRST[:2]) + "\n")
os.environ["SSL_CERT_FILE"] = str(_CERTIFICATE)

import pytest
from hypothesis import HealthCheck, settings

# No test may fail because the machine is busy, or by chance: examples have no deadline, and are the same ones in every
# run. ``--hypothesis-profile random`` draws others, and looks for what these do not find.
_PROFILE = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("muarl", _PROFILE, derandomize=True)
settings.register_profile("random", _PROFILE)
settings.load_profile("muarl")

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None]:
    """Collects the tests without looking for garbage, and takes what was imported out of all later searches for it.

    All modules, tests and their rewritten assertions stay until the end, so that every search would go through them in
    vain, for nearly half of the time that the collection takes.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def own_approvals() -> Iterator[None]:
    """The environments of its own that a test lets this process import count for that test alone."""
    yield
    if (registry := sys.modules.get("muarl.environments.registry")) is not None:
        registry._approved.clear()


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of this checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder with the benchmarks' own files and recorded reference results; the test is skipped without it.

    Looked for at the path in MUARL_SHARED_DATA, else in ``shared/data`` beside the checkout. Tests that use it carry
    the marker ``data``.
    """
    named = os.environ.get("MUARL_SHARED_DATA")
    if named and not Path(named).is_dir():
        pytest.skip(f"MUARL_SHARED_DATA={named} is not a folder")
    found = Path(named) if named else REPOSITORY.parent / "shared" / "data"
    if not found.is_dir():
        pytest.skip("no benchmark data: set MUARL_SHARED_DATA to the folder that holds it")
    return found


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Episodes that something outside the policy broke off are played again at once."""
    from muarl.environments import place

    monkeypatch.setattr(place, "EpisodeRunner", functools.partial(place.EpisodeRunner, backoff=0.0))


@pytest.fixture
def install_data(shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """``install_data("tau2")``: a benchmark's own files, installed for this test alone. Returns where."""
    monkeypatch.setenv("MUARL_DATA", str(tmp_path / "data"))

    def add(source: str) -> Path:
        from muarl_worlds import install

        return install.add(source, shared_data / source)

    return add


@pytest.fixture(scope="module")
def module_data(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Path]]:
    """``module_data("tau1", "tau2")``: the same for all tests of a module that come after it. Returns the folder with
    all of them."""
    with pytest.MonkeyPatch.context() as patch:

        def add(*sources: str) -> Path:
            from muarl_worlds import data, install

            data.manifest.cache_clear()  # tests of manifests leave theirs behind
            folder = tmp_path_factory.mktemp("data")
            patch.setenv("MUARL_DATA", str(folder))
            for source in sources:
                install.add(source, shared_data / source)
            return folder

        yield add
