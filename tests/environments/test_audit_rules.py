"""Which audit rules hold where only a name, a log's tools or a run's configuration is known."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest

from muarl.domains.auditing import AuditRules
from muarl.domains.base import Domain
from muarl.domains.tooling import tool
from muarl.environments import registry
from muarl.environments.audit_rules import RulesOfRuns, domain_with_tools, known_names, rules_named, rules_recorded
from muarl.environments.environment import Environment
from muarl.environments.registry import by_domain, environment_of, find, names
from muarl.types.chat import Message
from muarl.types.episode import Episode, StopReason, Turn
from muarl_worlds.environments.hotel import HOTEL
from muarl_worlds.tau.airline.audit import AIRLINE_BENCHMARK
from muarl_worlds.tau.retail.audit import RETAIL_BENCHMARK

RETAIL, AIRLINE = find("retail-generated").audit, find("airline-generated").audit


def episode(domain: str) -> Episode:
    return Episode("e", "t", domain, [Turn(Message("user", "hi"))], StopReason.USER_STOP)


def config(*domains: str) -> dict[str, Any]:
    sections = [{"name": name} for name in domains]
    return {"domain": sections[0] if len(sections) == 1 else sections}


def test_every_environment_says_without_its_data_which_domain_its_tasks_are_of() -> None:
    assert sum(len(found) for found in by_domain().values()) == len(names())
    told = {find(name).task_domain for name in ("tau2-telecom-workflow", "tau1-retail", "bfcl-v4", "acebench-zh")}
    assert told == {"telecom-workflow", "retail", "bfcl", "acebench"}


@pytest.mark.parametrize(
    ("name", "rules", "domain"),
    [
        ("retail", RETAIL_BENCHMARK, "retail"),
        ("retail-generated", RETAIL, "retail"),
        ("tau1-airline", AIRLINE_BENCHMARK, "airline"),
        ("hotel", HOTEL.audit, "hotel"),
        ("hotel-generated", HOTEL.audit, "hotel"),
    ],
)
def test_by_name(name: str, rules: object, domain: str) -> None:
    found = rules_named(name)
    assert found is not None
    assert (found.name, found.domain) == (name, domain)
    assert found.rules is rules


def test_no_rules_by_that_name() -> None:
    assert rules_named("moon") is None
    assert {"retail", "mock", "banking_knowledge", "clinic", "mcp-git"} <= set(known_names())


def test_an_environment_that_declares_no_rules_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = replace(find("mcp-git"), audit=None)
    monkeypatch.setattr("muarl.environments.audit_rules.find", lambda name: bare)
    assert rules_named("mcp-git") is None


def test_by_tools() -> None:
    assert domain_with_tools(["find_user_id_by_email", "get_order_details", "cancel_pending_order"]) == "retail"
    assert domain_with_tools(["find_user_id_by_email", "get_order_details"]) is None, "too few to tell"
    others = [f"other_{n}" for n in range(9)]
    assert domain_with_tools(["find_user_id_by_email", "get_order_details", "cancel_pending_order", *others]) is None


def test_a_benchmark_or_made_tasks() -> None:
    assert environment_of("retail") is find("retail-generated")
    assert environment_of("retail", benchmark=True) is find("tau2-retail")
    assert environment_of("mock") is find("tau2-mock"), "there is no other"
    assert environment_of("moon") is None


@pytest.mark.parametrize(
    ("domains", "domain", "name", "rules"),
    [
        (("retail-generated",), "retail", "retail-generated", RETAIL),
        (("tau2-retail",), "retail", "retail", RETAIL_BENCHMARK),
        (("retail-generated", "tau1-airline"), "airline", "airline", AIRLINE_BENCHMARK),
        (("retail-generated",), "airline", "airline-generated", AIRLINE),  # a cold start's episodes
        ((), "retail", "retail-generated", RETAIL),
    ],
)
def test_of_a_runs_episode(domains: tuple[str, ...], domain: str, name: str, rules: object) -> None:
    found = rules_recorded(config(*domains) if domains else {}, episode(domain))
    assert (found.name, found.rules) == (name, rules)


@pytest.mark.parametrize("name", ["./clinic.py:CLINIC", "somebodys-clinic"])
def test_a_strangers_clinic_is_not_audited_as_muarls(name: str) -> None:
    """The run folder's word is not enough to import code, and the domain's name is not enough to know its rules."""
    assert not rules_recorded(config(name), episode("clinic")).rules.declared
    assert rules_recorded(config("clinic-generated"), episode("clinic")).rules.declared


def test_of_a_whole_run() -> None:
    known = RulesOfRuns()
    assert known.of_run(config("retail-generated", "tau2-airline")) == [RETAIL, AIRLINE_BENCHMARK]
    assert [rules.declared for rules in known.of_run(config("./clinic.py:CLINIC"))] == [False]
    assert known.of_episode(config("tau2-retail"), episode("retail"), None) is RETAIL_BENCHMARK


class Kiosk(Domain):
    """Papers are sold."""

    name = "kiosk"
    database = {"papers": {}}
    audit = AuditRules(auth_tools=frozenset({"greet"}))

    @tool(kind="read")
    def greet(self) -> str:
        """Say who is there."""
        return "a reader"

    @tool(kind="write")
    def sell(self) -> str:
        """Sell a paper."""
        return "sold"

    @tool(kind="write")
    def fold(self) -> str:
        """Fold a paper."""
        return "folded"


def broken(size: str) -> Domain:
    raise KeyError("size")


@pytest.fixture
def plugged(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two installed plug-ins, one of which does not work."""
    module = ModuleType("kiosk_env")
    vars(module)["KIOSK"] = Environment(name="kiosk", domain=Kiosk, tasks={"test": []})
    vars(module)["BROKEN"] = Environment(name="broken", domain=broken, tasks={"test": []})
    monkeypatch.setitem(sys.modules, "kiosk_env", module)
    points = {n: EntryPoint(n, f"kiosk_env:{n.upper()}", registry.GROUP) for n in ("kiosk", "broken")}
    monkeypatch.setattr(registry, "_plugins", lambda: points)
    by_domain.cache_clear()
    yield
    by_domain.cache_clear()


@pytest.mark.usefixtures("plugged")
def test_an_installed_plug_in_is_known_by_its_tools_and_a_broken_one_is_in_nobodys_way() -> None:
    assert domain_with_tools(["greet", "sell", "fold"]) == "kiosk"
    found = rules_named("kiosk")
    assert found is not None
    assert found.rules.auth_tools == {"greet"}
    assert domain_with_tools(["find_user_id_by_email", "get_order_details", "cancel_pending_order"]) == "retail"
