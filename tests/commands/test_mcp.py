"""``muarl mcp``: the group of commands around MCP servers."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from muarl.basics.errors import ConfigError, DataError
from muarl.cli.main import app
from muarl.domains.mcp import servers
from muarl.environments import environment
from muarl_tools.commands.mcp import pick
from support.mcp import FAULTY, needs_sdk, needs_server


@pytest.fixture(autouse=True)
def no_data(tmp_path, monkeypatch):
    """No benchmark is installed; servers are where they were."""
    monkeypatch.setenv("MUARL_MCP_SERVERS", str(servers.home()))
    monkeypatch.setenv("MUARL_DATA", str(tmp_path))


def run(*arguments, env=None):
    done = CliRunner().invoke(app, ["mcp", *arguments], env=env)
    return done.exit_code, done.output


def test_list_says_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("MUARL_MCP_SERVERS", str(tmp_path))
    code, output = run("list")
    assert code == 0 and "mcp-server-git 2026.10.19" in output and "muarl mcp install sqlite" in output


def test_an_unknown_server_cannot_be_installed():
    code, output = run("install", "moon")
    assert code == 2 and "there is no MCP server 'moon'" in output


def test_one_server_that_cannot_be_installed_does_not_keep_the_others_from_it(monkeypatch, tmp_path):
    def install(name, progress):
        if name == "filesystem":
            raise DataError("there is no npm")
        return tmp_path / name

    monkeypatch.setattr(servers, "install", install)
    code, output = run("install")
    assert code == 2 and "filesystem: there is no npm" in output
    assert all(f"{name}: " in output for name in ("git", "memory", "sqlite"))


@needs_sdk
def test_tools_of_any_command():
    import sys

    code, output = run("tools", sys.executable, str(FAULTY), "ok", "{folder}")
    assert code == 0 and "put(text)  writes" in output and "look()  reads" in output
    done = CliRunner().invoke(app, ["mcp", "tools", "--json", sys.executable, str(FAULTY), "ok", "{folder}"])
    assert [row["name"] for row in json.loads(done.stdout)][:2] == ["look", "put"]


@needs_sdk
def test_tools_of_a_server_that_is_not_there():
    code, output = run("tools", "/nowhere/server")
    assert code == 2 and "the MCP server server is missing" in output
    code, output = run("tools", "mcp-git", env={"MUARL_MCP_SERVERS": "/nowhere"})
    environment._domain.cache_clear()  # it was made without the server
    environment._domain.cache_clear()
    assert code == 2 and "muarl mcp install git" in output


@needs_sdk
@pytest.mark.slow
def test_tools_of_a_scenario():
    needs_server("git")
    code, output = run("tools", "mcp-git")
    assert code == 0 and "git_status(repo_path)  reads" in output


def test_a_domain_is_picked_by_its_full_or_its_short_name(capsys):
    domain, task = pick("retail-generated", task="3", size="small", split="train")
    assert domain.name == "retail" and task.id == "retail-small-train-0-3"
    domain, task = pick("retail")
    assert task.id == "retail-tiny-test-0-0"
    assert "The data of tau2 are not installed: this is retail-generated" in capsys.readouterr().err
    domain, task = pick("mcp-git", size="medium")
    assert domain.name == "mcp-git" and task.id == "mcp-git-medium-test-0-0"


@pytest.mark.data
def test_a_benchmarks_domain_is_picked_with_and_without_a_task(shared_data):
    from muarl_worlds import install

    install.add("tau2", shared_data / "tau2")
    domain, task = pick("retail")
    assert domain.name == "retail" and task is None and domain.base.tables["orders"]
    _, task = pick("tau2-retail", task="1")
    assert task.id == "1" and task.benchmark
    with pytest.raises(ConfigError, match="--task: tau2-retail has no task 'x' in its split"):
        pick("tau2-retail", task="x")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("serve", "moon"), "there is no environment 'moon' (`muarl domains` lists them"),
        (
            ("serve", "retail-generated", "--size", "vast"),
            "--size is vast; the sizes of retail-generated are tiny, small",
        ),
        (("serve", "retail-generated", "--split", "dev"), "--split: retail-generated has no tasks for the split 'dev'"),
        (("serve", "retail-generated", "--task", "x"), "--task: tasks of retail-generated are numbered"),
        (("serve", "retail-generated", "--side", "user"), "the user's side has no tools to serve"),
        (
            ("serve", "retail-generated", "--http", "--host", "0.0.0.0"),
            "set the token that clients must send in MUARL_MCP_TO",
        ),
    ],
)
def test_what_cannot_be_served_is_told(arguments, told):
    code, output = run(*arguments, env={"MUARL_MCP_TOKEN": ""})
    assert code == 2 and told in " ".join(output.split())
