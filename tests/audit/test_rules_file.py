"""The rules of an own domain as a file beside its run: what is kept, what cannot be, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from muarl.audit.rules import FILE, keep_rules, read_rules
from muarl.basics.errors import ConfigError
from muarl.domains.auditing import AuditRules, Obligation, Resource
from muarl.domains.base import Domain
from muarl.domains.tooling import tool


class Pots(Domain):
    """Pots, whose owners may have them painted."""

    name = "pots"
    database = {"pots": {}}
    audit = AuditRules(
        auth_tools=frozenset({"log_in", "of_another_shop"}),
        person="owner",
        resources=(Resource("pots", "pot_id", held=("people", "pots"), arguments=("pot_id", "other"), mark="colour"),),
        forbids={"paint": lambda occasion: "it is sealed"},
        obligations=(
            Obligation("drying", frozenset({"paint"}), "That it dries.", (r"\bdr(y|ies)\b",), when="after"),
            Obligation("price", frozenset({"paint"}), "The price.", (r"\$",), applies=lambda occasion: True),
        ),
        spoken={"paint": ("colour",)},
        told_person=r"P-\d+",
        one_person=False,
        replays=True,
    )

    @tool
    def log_in(self, word: str) -> str:
        """Find a person.

        word: the password.
        """
        return word

    @tool(writes=True)
    def paint(self, pot_id: str) -> str:
        """Paint a pot.

        pot_id: which.
        """
        return pot_id


class Plain(Domain):
    """Declares nothing."""

    name = "plain"
    database = {"pots": {}}


def test_what_is_data_comes_back_as_it_was_and_code_is_named(tmp_path: Path) -> None:
    path = keep_rules(tmp_path, Pots())
    assert path == tmp_path / FILE
    found = read_rules(path)
    declared = Pots.audit
    assert found.domain == "pots"
    assert found.rules.auth_tools == {"log_in"}, "of the tools that there are"
    assert found.rules.kinds == {"log_in": "read", "paint": "write"}
    assert found.rules.resources == declared.resources
    assert found.rules.obligations == declared.obligations[:1]
    for field in ("person", "spoken", "told_person", "one_person", "consent", "transfer_tools", "free_writes"):
        assert getattr(found.rules, field) == getattr(declared, field), field
    assert found.in_code == ("forbids: paint", "obligations: price")
    assert not found.rules.forbids
    assert found.rules.declared


def test_what_is_kept_is_plain_yaml_and_serves_as_rules(tmp_path: Path) -> None:
    path = keep_rules(tmp_path, Pots())
    assert path is not None
    assert isinstance(yaml.safe_load(path.read_text()), dict)
    assert "!!" not in path.read_text()


def test_nothing_is_kept_of_a_class_that_declares_nothing(tmp_path: Path) -> None:
    assert keep_rules(tmp_path, Plain()) is None
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("domain: [x]", "domain must be text"),
        ("in_code: forbids", "in_code must be a list"),
        ("told_person: '('", "told_person: '\\(' is no regular expression"),
        ("resources: [{table: t, key: k, owner: o, pattern: '('}]", "resources.pattern"),
        ("forbids: {paint: !!python/name:os.system x}", "audit-rules.yaml"),
        ("forbids: {paint: os.system}", "forbids is unknown"),
    ],
)
def test_what_is_refused(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(ConfigError, match=says):
        read_rules(tmp_path / FILE, "")
