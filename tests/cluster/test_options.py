"""``muarl train --cluster`` and its settings, as far as no cluster is needed; and addresses where none is."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from muarl.basics.errors import ConfigError
from muarl.cli.main import app
from muarl.config.load import load_config
from muarl.config.sections import RunConfig

ray = pytest.importorskip("ray", reason="pip install ray")


def muarl(*arguments: str) -> Any:
    return CliRunner().invoke(app, [*arguments])


def test_the_option_sets_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    def run(config: RunConfig) -> Path:
        ran.append(config)
        return config.runs_dir

    monkeypatch.setattr("muarl.recipes.rl.run", run)
    done = muarl("train", "-c", "quickstart", "--cluster", "10.0.0.1:6379", "cluster.samplers=3")
    assert done.exit_code == 0, done.output
    assert ran[0].cluster.address == "10.0.0.1:6379" and ran[0].cluster.samplers == 3
    assert load_config("quickstart").cluster.address is None


@pytest.mark.parametrize("address", ["", "remote", "host", ":6379", "host:", "host:0", "host:70000", "ray://host:1/x"])
def test_addresses_that_are_none(address: str) -> None:
    with pytest.raises(ConfigError, match=r"cluster\.address: must be `local`, `auto` or HOST:PORT"):
        load_config("quickstart", [f"cluster.address='{address}'"])


@pytest.mark.parametrize("command", ["quickstart", "sft-user"])
def test_what_does_not_run_on_a_cluster_says_so_before_it_starts(command: str, tmp_path: Path) -> None:
    refused = muarl(command, "cluster.address=local", f"runs_dir={tmp_path}")
    assert refused.exit_code and "only `muarl train` and `muarl sft` run on a cluster" in refused.output
    assert not any(tmp_path.iterdir())


def test_evaluation_does_not_either(tmp_path: Path) -> None:
    refused = muarl("eval", "-c", "quickstart", "cluster.address=local", f"runs_dir={tmp_path}", "eval.tasks=1")
    assert refused.exit_code and "only `muarl train` and `muarl sft` run on a cluster" in refused.output


@pytest.fixture
def listener() -> Iterator[int]:
    """The port of a server that takes every connection and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept = []

        def take() -> None:
            while True:
                try:
                    kept.append(server.accept())
                except OSError:
                    return

        threading.Thread(target=take, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        for connection, _ in kept:
            connection.close()


def test_an_address_where_nothing_listens(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]
    began = time.monotonic()
    refused = muarl("train", "-c", "quickstart", "--cluster", f"127.0.0.1:{free}", f"runs_dir={tmp_path}", "threads=1")
    assert refused.exit_code
    assert f"cluster.address is 127.0.0.1:{free}, and nothing answers there" in refused.output
    assert not any(tmp_path.iterdir()) and time.monotonic() - began < 60 and not ray.is_initialized()


def test_an_address_where_something_else_listens(listener: int, tmp_path: Path) -> None:
    where = ["--cluster", f"127.0.0.1:{listener}", "cluster.start_timeout=3"]
    refused = muarl("train", "-c", "quickstart", *where, f"runs_dir={tmp_path}", "threads=1")
    assert refused.exit_code
    assert "no Ray cluster answered within 3 s" in refused.output
    assert not any(tmp_path.iterdir()) and not ray.is_initialized()
