"""What a configuration of somebody else's may not do: send keys to strangers, or read this machine's files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from muarl.basics.errors import ConfigError
from muarl.config.load import dump_config, load_config
from muarl.config.sections import RunConfig
from muarl.config.trust import recall, remember, to_approve

STRANGER = "https://stranger.example/v1"
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """``write(user={...})``: a configuration file in a folder of its own."""

    def to_file(name: str = "theirs.yaml", **values: Any) -> Path:
        folder = tmp_path / "theirs"
        folder.mkdir(exist_ok=True)
        path = folder / name
        path.write_text(yaml.safe_dump({"extends": "cpu", **values}))
        return path

    return to_file


def llm(base_url: str | None = STRANGER, **more: Any) -> dict[str, Any]:
    return {"kind": "llm", "endpoint": {"model": "m", **({"base_url": base_url} if base_url else {}), **more}}


def key_of(config: RunConfig, section: str = "user") -> str:
    return getattr(config, section).endpoint.api_key_env


@pytest.mark.parametrize("section", ["user", "eval_user"])
@pytest.mark.parametrize("name", ["AWS_SECRET_ACCESS_KEY", "SOMEBODY_API_KEY", "OPENAI_API_KEY_FILE", "GITHUB_TOKEN"])
def test_a_file_cannot_name_any_variable_as_a_key(write: Write, section: str, name: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"theirs\.yaml: {section}\.endpoint would send the key in {name}.*{name}_HOST"
    ):
        load_config(write(**{section: llm(api_key_env=name)}))
    with pytest.raises(ConfigError, match="stranger.example|api.openai.com"):
        load_config(write(**{section: llm(None, api_key_env=name)}))


def test_a_strangers_address_in_a_file_gets_no_key(write: Write) -> None:
    assert key_of(load_config(write(user=llm()))) == ""
    assert key_of(load_config(write(user=llm("http://127.0.0.1:8100/v1")))) == ""
    assert key_of(load_config(write(user=llm("http://api.openai.com/v1")))) == "", "not in the clear"
    assert key_of(load_config(write(user=llm("https://api.openai.com:8443/v1")))) == ""
    assert key_of(load_config(write(user=llm("https://api.openai.com.stranger.example/v1")))) == ""
    assert key_of(load_config(write(user=llm("https://API.openai.com/v1")))) == "OPENAI_API_KEY"
    assert key_of(load_config(write(user=llm(None)))) == "OPENAI_API_KEY"


@pytest.mark.parametrize("name", ["eval.judge", "eval.user_judge", "eval.audit_judge", "coldstart.judge"])
def test_nor_does_a_judges(write: Write, name: str) -> None:
    section, field = name.split(".")
    for given in (f"endpoint:m@{STRANGER}", {"model": "m", "base_url": STRANGER}):
        config = load_config(write(**{section: {field: given}}))
        assert '"api_key_env": ""' in getattr(getattr(config, section), field)
    with pytest.raises(ConfigError, match="SOME_KEY_HOST"):
        load_config(write(**{section: {field: {"model": "m", "base_url": STRANGER, "api_key_env": "SOME_KEY"}}}))
    sent = load_config(write(), [f"{name}=endpoint:m@{STRANGER}"])
    assert getattr(getattr(sent, section), field) == f"endpoint:m@{STRANGER}"


def test_the_environment_says_which_host_a_key_is_for(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(user=llm("https://box.example:8000/v1", api_key_env="BOX_KEY"))
    monkeypatch.setenv("BOX_KEY_HOST", "other.example, box.example:8001")
    with pytest.raises(ConfigError, match="BOX_KEY_HOST=box.example:8000"):
        load_config(path)
    for hosts in ("other.example,box.example:8000", "box.example", "https://box.example:8000/v1"):
        monkeypatch.setenv("BOX_KEY_HOST", hosts)
        assert key_of(load_config(path)) == "BOX_KEY"
    plain = write(user=llm("http://box.example:8000/v1", api_key_env="BOX_KEY"))
    with pytest.raises(ConfigError):
        load_config(plain)
    monkeypatch.setenv("BOX_KEY_HOST", "http://box.example:8000")
    assert key_of(load_config(plain)) == "BOX_KEY"


def test_openais_key_is_for_the_base_url_of_the_environment(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gateway.example/v1")
    assert key_of(load_config(write(user=llm("https://gateway.example/v1")))) == "OPENAI_API_KEY"
    assert key_of(load_config(write(user=llm("https://api.openai.com/v1")))) == "", "it is the gateway's key"


def test_providers_keys_go_to_their_providers(write: Write) -> None:
    mine = llm("https://api.together.xyz/v1", api_key_env="TOGETHER_API_KEY")
    assert key_of(load_config(write(user=mine))) == "TOGETHER_API_KEY"
    with pytest.raises(ConfigError, match="TOGETHER_API_KEY_HOST=stranger.example"):
        load_config(write(user=llm(api_key_env="TOGETHER_API_KEY")))


def test_the_command_line_may_say_anything(write: Write) -> None:
    path = write()
    given = ["user.kind=llm", "user.endpoint.model=m", f"user.endpoint.base_url={STRANGER}"]
    assert key_of(load_config(path, given)) == "OPENAI_API_KEY"
    assert key_of(load_config(path, [*given, "user.endpoint.api_key_env=MY_SECRET"])) == "MY_SECRET"
    whole = f"{{model: m, base_url: '{STRANGER}', api_key_env: MY_SECRET}}"
    assert key_of(load_config(write(user=llm(api_key_env="THEIRS_KEY")), [f"user.endpoint={whole}"])) == "MY_SECRET"
    assert key_of(load_config("cpu", [*given, "user.endpoint.api_key_env=MY_SECRET"])) == "MY_SECRET"


def test_half_of_it_on_the_command_line_is_not_enough(write: Write) -> None:
    theirs = write(user=llm())
    assert key_of(load_config(theirs, ["user.endpoint.model=other"])) == "", "the address is still the file's"
    with pytest.raises(ConfigError, match="user.endpoint.base_url="):
        load_config(theirs, ["user.endpoint.api_key_env=MY_SECRET"])
    with pytest.raises(ConfigError, match="THEIRS_KEY_HOST"):
        load_config(write(user=llm(api_key_env="THEIRS_KEY")), ["user.endpoint.base_url=https://mine.example/v1"])


def test_a_file_that_is_extended_is_no_better(write: Write) -> None:
    write("override 'base'.yaml", user=llm(api_key_env="THEIRS_KEY"))
    write("preset base.yaml", user=llm(api_key_env="THEIRS_KEY"))
    for name in ("override 'base'.yaml", "preset base.yaml"):
        with pytest.raises(ConfigError, match="THEIRS_KEY_HOST"):
            load_config(write("top.yaml", extends=name))


def test_keys_have_names_of_variables(write: Write) -> None:
    with pytest.raises(ConfigError, match="api_key_env"):
        load_config(write(user=llm(api_key_env="A B")))


# files


def test_files_lie_below_the_configurations_own_folder(write: Write, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("private")
    own = write().parent / "texts" / "policy.md"
    own.parent.mkdir()
    own.write_text("A policy.")
    assert load_config(write(domain={"policy": str(own)})).domain.policy == own
    link = own.parent / "link.md"
    link.symlink_to(secret)
    hidden = own.parent.parent / ".env"
    hidden.write_text("KEY=1")
    for path in (secret, link, own.parent / ".." / ".." / "secret.txt", hidden, Path("/proc/self/environ")):
        with pytest.raises(ConfigError, match=r"domain\.policy names .*domain\.policy=.* on the command line"):
            load_config(write(domain={"policy": str(path)}))
    assert load_config(write(), [f"domain.policy={secret}"]).domain.policy == secret


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("domain.tasks", {"user": {"kind": "scripted"}, "eval_user": {"kind": "scripted"}}),
        ("sft.demonstrations_file", {}),
    ],
)
def test_so_do_tasks_and_demonstrations(write: Write, tmp_path: Path, name: str, more: dict[str, Any]) -> None:
    section, field = name.split(".")
    secret = tmp_path / "theirs.jsonl"
    with pytest.raises(ConfigError, match=rf"{name} names"):
        load_config(write(**{section: {field: str(secret)}}, **more))
    assert getattr(getattr(load_config(write(**more), [f"{name}={secret}"]), section), field) == secret


def test_so_do_scenarios_with_all_that_is_in_them(write: Write, tmp_path: Path) -> None:
    (tmp_path / "policy.md").write_text("private")
    folder = write().parent / "scenario"
    folder.mkdir()
    (folder / "world.md").write_text("A world.")
    given = {"coldstart": {"scenarios": ["hotel-generated", str(folder)]}}
    assert load_config(write(**given)).coldstart.scenarios[1] == str(folder)
    (folder / "policy.md").symlink_to(tmp_path / "policy.md")
    with pytest.raises(ConfigError, match=r"coldstart\.scenarios names"):
        load_config(write(**given))
    with pytest.raises(ConfigError, match=r"coldstart\.scenarios names"):
        load_config(write(coldstart={"scenarios": [str(tmp_path)]}))


def test_what_a_file_extends_is_held_to_the_same_and_must_be_a_configuration(write: Write, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "policy.md").write_text("mine")
    (mine / "secrets.yaml").write_text("password: hunter2\n")
    with pytest.raises(ConfigError, match="there is no key 'password'"):
        load_config(write(extends=str(mine / "secrets.yaml")))
    (mine / "own.yaml").write_text("extends: cpu\nseed: 7\n")
    assert load_config(write(extends="../mine/own.yaml")).seed == 7
    for more in (f"domain: {{policy: {mine / 'policy.md'}}}", "runs_dir: /elsewhere"):
        (mine / "own.yaml").write_text(f"extends: cpu\n{more}\n")
        name = more.split(":")[0].replace("domain", "domain.policy")
        with pytest.raises(ConfigError, match=rf"own\.yaml: {name} names .* on the command line"):
            load_config(write(extends=str(mine / "own.yaml")))


def test_pipes_are_not_read(write: Write) -> None:
    folder = write().parent
    os.mkfifo(folder / "pipe")
    (folder / "scenario").mkdir()
    os.mkfifo(folder / "scenario" / "policy.md")
    for given in (
        {"domain": {"policy": str(folder / "pipe")}},
        {"coldstart": {"scenarios": [str(folder / "scenario")]}},
    ):
        with pytest.raises(ConfigError, match="which is neither a file nor a folder"):
            load_config(write(**given))
    with pytest.raises(ConfigError, match="pipe: no such file"):
        load_config(write(extends=str(folder / "pipe")))


@pytest.mark.parametrize("name", ["runs_dir", "resume", "retrieval.cache", "engine.update_folder"])
def test_so_does_what_is_written_or_below_the_working_folder(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    section, _, field = name.rpartition(".")

    def given(value: object) -> dict[str, Any]:
        more = {"kind": "vllm"} if section == "engine" else {}
        return {section: {field: str(value), **more}} if section else {field: str(value)}

    link = write().parent / "link"
    link.symlink_to(tmp_path)
    for path in (tmp_path / "other", link / "other", "../other", "~/other", work / ".git" / "hooks", "/tmp"):
        with pytest.raises(ConfigError, match=rf"theirs\.yaml: {name} names .*{name}=.* on the command line"):
            load_config(write(**given(path)))
    for path in ("results", work / "runs", link.parent / "runs"):
        load_config(write(**given(path)))
    own = write(**given("results"))
    assert load_config(own, [f"{name}={tmp_path / 'other'}"]) is not None
    remember(write(**given(tmp_path / "other")), {"retrieval.cache": str(tmp_path / "other")})
    if name == "retrieval.cache":
        load_config(write(**given(tmp_path / "other")))


def test_a_run_is_resumed_wherever_its_configuration_says_that_runs_lie(write: Write, tmp_path: Path) -> None:
    moved = write("config.yaml", runs_dir="/elsewhere")
    assert load_config(moved, [f"resume={moved.parent}"]).resume == moved.parent
    assert load_config(moved, starts=False).runs_dir == Path("/elsewhere")
    own = write("config.yaml", runs_dir=str(tmp_path))
    assert load_config(own).runs_dir == tmp_path, "where it lies"
    elsewhere = load_config("cpu", [f"runs_dir={tmp_path}", "retrieval.cache=/cache"])
    approved = to_approve(elsewhere)
    assert (approved["runs_dir"], approved["retrieval.cache"]) == (str(tmp_path), "/cache")


def test_a_configuration_in_the_home_folder_owns_not_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "notes.txt").write_text("private")
    path = tmp_path / "theirs.yaml"
    path.write_text(yaml.safe_dump({"extends": "cpu", "domain": {"policy": str(tmp_path / "notes.txt")}}))
    with pytest.raises(ConfigError, match="notes.txt"):
        load_config(path)


def test_demonstrations_may_come_from_the_runs_of_the_working_folder(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(sft={"demonstrations_file": "runs/coldstart/dataset/episodes.jsonl"})
    assert load_config(path).sft.demonstrations_file is not None


# other machines


@pytest.mark.parametrize(
    ("name", "theirs", "here"),
    [("cluster.address", "10.0.0.7:6379", "127.0.0.1:6379"), ("engine.urls", ["10.0.0.7:8000"], ["localhost:8000"])],
)
def test_weights_go_to_no_machine_that_a_file_names(write: Write, name: str, theirs: Any, here: Any) -> None:
    section, field = name.split(".")
    more = {"kind": "vllm"} if section == "engine" else {}
    with pytest.raises(ConfigError, match=rf"{name} names 10\.0\.0\.7"):
        load_config(write(**{section: {field: theirs, **more}}))
    load_config(write(**{section: {field: here, **more}}))
    load_config(write(**{section: more}), [f"{name}={theirs}"])


# runs


def test_what_was_said_of_a_run_is_remembered_outside_it(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    policy = tmp_path / "policy.md"
    given = ["user.kind=llm", "user.endpoint.model=m", f"user.endpoint.base_url={STRANGER}", f"domain.policy={policy}"]
    given += ["user.endpoint.api_key_env=MY_KEY", "eval.judge=endpoint:j@https://judges.example/v1"]
    config = load_config("cpu", given)
    run = tmp_path / "runs" / "mine"
    run.mkdir(parents=True)
    (run / "config.yaml").write_text(dump_config(config))
    with pytest.raises(ConfigError):
        load_config(run / "config.yaml")
    remember(run / "config.yaml", to_approve(config))
    assert load_config(run / "config.yaml") == config
    assert load_config(run) == config
    state = [p.stat().st_mode & 0o077 for p in (tmp_path / "state" / "muarl").rglob("*") if p.is_dir()]
    assert state == [0]

    changed = load_config("cpu", [*given, "user.endpoint.base_url=https://another.example/v1"])
    (run / "config.yaml").write_text(dump_config(changed))
    with pytest.raises(ConfigError, match="MY_KEY_HOST=another.example"):
        load_config(run)
    moved = tmp_path / "elsewhere"
    run.rename(moved)
    with pytest.raises(ConfigError):
        load_config(moved)


def test_a_state_folder_that_cannot_be_written_or_read_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    remember(tmp_path / "config.yaml", {"user.endpoint": "A b"})
    assert "named again" in caplog.text
    assert recall(tmp_path / "config.yaml") == {}


@pytest.mark.skipif(os.name != "posix", reason="files have owners there")
def test_what_another_user_wrote_into_the_state_folder_approves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    remember(tmp_path / "config.yaml", {"user.endpoint": "A b"})
    assert recall(tmp_path / "config.yaml") == {"user.endpoint": ("A b",)}
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert recall(tmp_path / "config.yaml") == {}


def test_a_user_without_a_home_may_start_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nowhere)
    remember(tmp_path / "config.yaml", {"eval.judge": "KEY https://host"})
    assert recall(tmp_path / "config.yaml") == {}
    (tmp_path / "policy.md").write_text("Be kind.")
    (tmp_path / "mine.yaml").write_text(f"domain: {{policy: {tmp_path / 'policy.md'}}}")
    assert load_config(tmp_path / "mine.yaml").domain.policy == tmp_path / "policy.md"


@pytest.mark.parametrize("given", ["", '""', "null"])
def test_no_key_is_named_by_naming_nothing(given: str) -> None:
    config = load_config("quickstart", ["user.kind=llm", "user.endpoint.model=m", f"user.endpoint.api_key_env={given}"])
    assert key_of(config) == ""
