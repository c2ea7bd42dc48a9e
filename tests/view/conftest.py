"""A finished run to look at, its index, and a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from muarl.observe.rundir import RunDirectory
from muarl_tools.view.runs import Library
from support.viewing import CHROMIUM, Browser, indexed, make_run


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A finished run that tests only read."""
    return make_run(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def library(finished: RunDirectory, tmp_path: Path) -> Library:
    """The run, indexed."""
    return indexed(tmp_path, finished.path)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser, shared by the tests."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


@pytest.fixture
def browser(chromium: Browser) -> Browser:
    """The browser, with nothing to complain of yet."""
    chromium.go("about:blank")  # a page of an earlier test might still ask for something
    chromium.complaints.clear()
    chromium.requests.clear()
    chromium.size(1280)
    return chromium
