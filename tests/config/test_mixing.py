"""Several domains in one configuration: how they are written, changed, merged, trusted and resumed."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from muarl.basics.errors import ConfigError
from muarl.config.load import dump_config, load_config
from muarl.config.sections import DomainConfig, RunConfig
from muarl.runs.config_changes import changes

TWO = "domain=[retail-generated, {name: airline-generated, weight: 2}]"


def names(config: RunConfig) -> list[tuple[str, str, float]]:
    return [(domain.name, domain.size, domain.weight) for domain in config.domains]


def test_domain_is_a_section_or_a_list_of_them(tmp_path: Path) -> None:
    one = load_config("quickstart")
    assert one.domain.name == "retail-generated"
    assert one.domains == (one.domain,)
    assert isinstance(yaml.safe_load(dump_config(one))["domain"], dict)
    several = load_config("quickstart", [TWO])
    assert names(several) == [("retail-generated", "tiny", 1.0), ("airline-generated", "tiny", 2.0)]
    file = tmp_path / "mine.yaml"
    file.write_text(dump_config(several))
    assert load_config(file) == several


def test_who_needs_one_domain_says_which_there_are() -> None:
    with pytest.raises(ConfigError, match=r"has retail-generated, airline-generated: .*domain\.name=retail-generated"):
        _ = load_config("quickstart", [TWO]).domain


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("domain.size=small", [("retail-generated", "small", 1.0), ("airline-generated", "small", 2.0)]),
        ("domain.1.size=small", [("retail-generated", "tiny", 1.0), ("airline-generated", "small", 2.0)]),
        ("domain.0.weight=3", [("retail-generated", "tiny", 3.0), ("airline-generated", "tiny", 2.0)]),
        ("domain.name=airline-generated", [("airline-generated", "tiny", 1.0)]),
        ("domain.name=hotel-generated", [("hotel-generated", "tiny", 1.0)]),
        (
            "domain.name=[airline-generated, {name: bank-generated, weight: 4}]",
            [("airline-generated", "tiny", 1.0), ("bank-generated", "tiny", 4.0)],
        ),
    ],
)
def test_overrides_change_a_list(override: str, expected: list[tuple[str, str, float]]) -> None:
    assert names(load_config("quickstart", [TWO, override])) == expected


def test_a_name_takes_over_what_all_entries_share() -> None:
    both = "domain=[{name: retail-generated, size: official}, {name: airline-generated, size: official, intents: [x]}]"
    chosen = load_config("quickstart", [both, "domain.name=bank-generated"]).domain
    assert (chosen.size, chosen.intents) == ("official", ())


def test_several_names_keep_the_sections_settings() -> None:
    found = load_config("quickstart", ["domain.size=small", "domain.name=[retail-generated, airline-generated]"])
    assert [domain.size for domain in found.domains] == ["small", "small"]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("domain=[]", "the list is empty"),
        ("domain=[hotel-generated, hotel-generated]", "hotel-generated is listed twice"),
        ("domain=[{name: hotel-generated, weight: 0}, bank-generated]", "domain.0.weight"),
        ("domain=[hotel-generated, {nam: bank-generated}]", "no key 'domain.1.nam'; did you mean 'domain.name'"),
        ("domain.siez=small", "no key 'domain.siez'; did you mean 'domain.size'"),
    ],
)
def test_what_is_wrong_is_named(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("[", r"\[")):
        load_config("quickstart", [override])


def test_a_number_beyond_the_list_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"override 'domain.2.size=small': domain.2: the list has 2 domains"):
        load_config("quickstart", [TWO, "domain.2.size=small"])


def test_a_section_over_a_list_changes_every_entry(tmp_path: Path) -> None:
    parent, child = tmp_path / "both.yaml", tmp_path / "mine.yaml"
    parent.write_text("extends: quickstart\ndomain: [retail-generated, airline-generated]\n")
    child.write_text("extends: both.yaml\ndomain: {size: small}\n")
    assert [domain.size for domain in load_config(child).domains] == ["small", "small"]
    child.write_text("extends: both.yaml\ndomain: {size: small, name: airline-generated}\n")
    assert names(load_config(child)) == [("airline-generated", "small", 1.0)]


@pytest.mark.parametrize(
    "section",
    [
        "[{name: retail-generated, policy: /etc/hostname}, airline-generated]",
        "[retail-generated, {name: airline-generated, policy: /etc/hostname}]",
        "[{name: retail-generated, policy: /etc/hostname}]",
        "{policy: /etc/hostname}",
    ],
)
def test_a_file_may_not_name_other_files_in_a_list_either(tmp_path: Path, section: str) -> None:
    parent, file = tmp_path / "both.yaml", tmp_path / "mine.yaml"
    parent.write_text("extends: quickstart\ndomain: [retail-generated, airline-generated]\n")
    file.write_text(f"extends: both.yaml\ndomain: {section}\n")
    with pytest.raises(ConfigError, match=r"domain\.(0\.|1\.)?policy names /etc/hostname"):
        load_config(file)


def test_the_command_line_may_name_a_file_for_every_domain(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("extends: quickstart\ndomain: [retail-generated, {name: airline-generated, policy: /etc/hosts}]\n")
    found = load_config(file, ["domain.policy=/etc/hostname"])
    assert {str(domain.policy) for domain in found.domains} == {"/etc/hostname"}
    with pytest.raises(ConfigError, match=r"domain\.1\.policy names /etc/hosts"):
        load_config(file, ["domain.0.policy=/etc/hostname"])


def test_a_copy_takes_a_section() -> None:
    config = load_config("quickstart", [TWO])
    assert config.model_copy(update={"domain": DomainConfig(name="bank-generated")}).domain.name == "bank-generated"
    assert config.model_copy(update={"seed": 4}).domains == config.domains


@pytest.mark.parametrize(
    ("override", "changed"),
    [
        ("domain.1.weight=3", {"domain.1.weight": (2.0, 3.0)}),
        ("domain.size=small", {"domain.0.size": ("tiny", "small"), "domain.1.size": ("tiny", "small")}),
    ],
)
def test_changes_of_the_mix_are_told(tmp_path: Path, override: str, changed: dict[str, object]) -> None:
    (tmp_path / "config.yaml").write_text(dump_config(load_config("quickstart", [TWO])))
    assert changes(tmp_path, load_config("quickstart", [TWO, override])) == changed
    assert changes(tmp_path, load_config("quickstart", [TWO])) == {}


def test_one_domain_instead_of_the_mix_is_a_change(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(dump_config(load_config("quickstart", [TWO])))
    found = changes(tmp_path, load_config("quickstart"))
    assert {"domain.0.name", "domain.1.name"} <= set(found)
