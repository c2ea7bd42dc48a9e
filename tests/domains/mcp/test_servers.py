"""Installing the public servers: pinned, private, whole or not at all."""

from __future__ import annotations

import json
import os
import re
import stat

import pytest

from muarl.basics.errors import ConfigError, DataError
from muarl.domains.mcp import servers


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MUARL_MCP_SERVERS", str(tmp_path / "servers"))
    return tmp_path / "servers"


def program(folder, name, text):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def test_every_server_is_pinned_to_one_version_and_says_its_licence():
    for server in servers.SERVERS.values():
        bundle = servers.BUNDLES[server.bundle]
        assert server.licence == "MIT"
        text = (servers.PINS / bundle.pins[0]).read_text()
        if bundle.source == "pypi":
            assert f"{server.package}=={server.version}\n" in text
            assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in text.split())
        else:
            assert json.loads(text)["dependencies"][server.package] == server.version
            lock = json.loads((servers.PINS / bundle.pins[1]).read_text())
            packages = {k: v for k, v in lock["packages"].items() if k}
            assert packages[f"node_modules/{server.package}"]["version"] == server.version
            assert all(v["integrity"].startswith("sha512-") and "resolved" not in v for v in packages.values())


def test_what_is_missing_is_told_with_the_remedy(home, monkeypatch):
    server = servers.server("git")
    assert server.missing() == "the MCP server git is not installed: run `muarl mcp install git`"
    monkeypatch.setenv("PATH", str(home))
    assert server.missing() == "the MCP server git needs the program 'git', which is not on the PATH"
    assert "needs the program 'node'" in servers.server("memory").missing()
    with pytest.raises(ConfigError, match="there is no MCP server 'moon' to install; known: filesystem, git"):
        servers.server("moon")


def test_servers_live_in_the_data_folder_unless_told_otherwise(tmp_path, monkeypatch):
    monkeypatch.delenv("MUARL_MCP_SERVERS", raising=False)
    monkeypatch.setenv("MUARL_DATA", str(tmp_path))
    assert servers.home() == tmp_path.resolve() / "mcp"
    assert servers.server("git").command("--x")[0] == str(tmp_path.resolve() / "mcp" / "git" / "bin" / "python")


def test_an_npm_bundle_is_installed_whole_and_once(home, tmp_path, monkeypatch):
    tools = tmp_path / "bin"
    program(tools, "npm", 'echo "$@" >> "$PWD/../called"; mkdir node_modules')
    program(tools, "node", "exit 0")
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    said = []
    folder = servers.install("memory", said.append)
    assert folder == home / "node" and (folder / "node_modules").is_dir() and (folder / "package-lock.json").is_file()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    assert servers.server("memory").missing() is None and servers.server("filesystem").missing() is None
    assert "installing @modelcontextprotocol/server-memory 2026.8.31" in said[0]
    assert "--ignore-scripts" in (home / "called").read_text()
    servers.install("filesystem", said.append)
    assert len((home / "called").read_text().splitlines()) == 1 and len(said) == 1


def test_another_version_of_the_pins_is_installed_anew(home, tmp_path, monkeypatch):
    tools = tmp_path / "bin"
    program(tools, "npm", "mkdir node_modules")
    program(tools, "node", "exit 0")
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    folder = servers.install("memory")
    (folder / "installed").write_text("an older version")
    assert "run `muarl mcp install memory`" in servers.server("memory").missing()
    servers.install("memory")
    assert servers.server("memory").missing() is None


def test_an_installation_that_fails_leaves_nothing_behind(home, tmp_path, monkeypatch):
    tools = tmp_path / "bin"
    program(tools, "npm", "echo no network >&2; exit 1")
    program(tools, "node", "exit 0")
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    with pytest.raises(DataError, match="npm failed: no network"):
        servers.install("memory")
    assert list(home.iterdir()) == []


def test_without_npm_the_remedy_is_told(home, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(DataError, match=r"need npm: install Node.js 20 or newer"):
        servers.install("filesystem")
