"""The command line, as a person runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture(scope="session")
def muarl() -> Callable[..., Any]:
    """``muarl("coldstart", ..., ok=True)``: the command's result; with ``ok`` it must have succeeded."""
    from typer.testing import CliRunner

    from muarl.cli.main import app

    def run(*arguments: str, ok: bool = False) -> Any:
        result = CliRunner().invoke(app, list(arguments))
        assert not ok or result.exit_code == 0, result.output
        return result

    return run
