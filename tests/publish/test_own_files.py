"""A person's own environment takes along what it reads, and is refused where it could not work elsewhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from muarl import Domain, SqlDatabase
from muarl.basics.errors import ConfigError
from muarl.environments.registry import find, load_reference
from muarl_tools.publish import own_files
from muarl_tools.publish.other_process import MeasuredElsewhere, measured_elsewhere
from muarl_tools.publish.own_files import check_publishable, needed_files
from muarl_tools.publish.publishing import PublishRequest, publish
from support.publishing import SHOP, own_desk, small_wheel


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> str:
    return own_desk(tmp_path_factory.mktemp("desk"))


@pytest.fixture(scope="module")
def elsewhere(reference: str, tmp_path_factory: pytest.TempPathFactory) -> MeasuredElsewhere:
    folder = tmp_path_factory.mktemp("elsewhere")
    return measured_elsewhere(reference, size=None, tasks=3, seed=0, hash_seed=1, folder=folder)


def test_modules_and_what_they_read_are_needed_and_nothing_else(reference: str, elsewhere: MeasuredElsewhere) -> None:
    needed = needed_files(reference, elsewhere)
    assert (needed.file, needed.name) == ("desk.py", "DESK")
    assert set(needed.files) == {"desk.py", "people.py", "names.json", "policy.md"}
    assert needed.left == ["notes.txt"] and needed.packages == [] and needed.databases == []
    assert elsewhere.measured.scores[0].agent == "do nothing"


def test_files_outside_of_the_folder_are_refused(reference: str, elsewhere: MeasuredElsewhere, tmp_path: Path) -> None:
    more = replace(elsewhere, read=elsewhere.read | {tmp_path / "prices.csv"})
    with pytest.raises(ConfigError, match=r"reads .*prices\.csv, outside of its folder .*: move it there"):
        needed_files(reference, more)


def test_hidden_files_are_refused(reference: str, elsewhere: MeasuredElsewhere) -> None:
    folder = Path(reference.rpartition(":")[0]).parent
    for hidden in (".env", ".secrets/key.txt"):
        with pytest.raises(ConfigError, match=f"reads {hidden} in .*, a hidden file"):
            needed_files(reference, replace(elsewhere, read=elsewhere.read | {folder / hidden}))


def test_packages_that_it_imports_are_required(
    reference: str, elsewhere: MeasuredElsewhere, monkeypatch: pytest.MonkeyPatch
) -> None:
    providers = {"people": ["people"], "muarl": ["muarl"], "json": ["json"], "pathlib": ["x"], "yaml": ["PyYAML"]}
    names = SimpleNamespace(packages_distributions=lambda: providers, version=lambda name: "6.0")
    monkeypatch.setattr(own_files, "metadata", names)
    desk = Path(reference.rpartition(":")[0])
    desk.write_text(f"import yaml.nodes\nfrom . import other\n{SHOP}")
    assert needed_files(reference, elsewhere).packages == ["PyYAML>=6.0"]


class ServerDesk(Domain):
    """Reads a server's database."""

    database = SqlDatabase("postgresql://desk@db.example.org/desk")


def test_what_could_not_work_elsewhere_is_refused(reference: str) -> None:
    bank = find("bank-generated")
    for environment, named, message in (
        (find("tau2-retail"), "tau2-retail", "is a benchmark: .*: publish retail-generated instead"),
        (find("mcp-sqlite"), "mcp-sqlite", "MCP server of this machine"),
        (bank, "some.module:BANK", "is a module: name its file"),
        (bank, "my-plugin", "is a plug-in's"),
        (bank, "./bank.py:BANK", "give it another name"),
        (replace(bank, domain=ServerDesk), "bank-generated", "reads the database of a server"),
    ):
        with pytest.raises(ConfigError, match=message):
            check_publishable(environment, named, None)
    with pytest.raises(ConfigError, match="--size is huge"):
        check_publishable(bank, "bank-generated", "huge")
    with pytest.raises(ConfigError, match="has only one size"):
        check_publishable(replace(bank, sizes=()), "bank-generated", "tiny")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("Path(__file__).parent", "Path({folder!r})", r"a copy of its files cannot be played elsewhere .*relative"),
        ("index % 3", "hash(str(index)) % 3", "a copy of its files gives other tasks or figures"),
    ],
)
def test_code_that_works_only_here_is_refused(tmp_path: Path, before: str, after: str, message: str) -> None:
    folder = tmp_path / "desk"
    named = own_desk(folder)
    assert before in SHOP
    (folder / "desk.py").write_text(SHOP.replace(before, after.format(folder=str(folder))))
    load_reference(named)
    with pytest.raises(ConfigError, match=message):
        publish(PublishRequest(named, "openenv", tmp_path / "out", tasks=3, wheel=small_wheel(tmp_path)))
    assert not (tmp_path / "out").exists()
