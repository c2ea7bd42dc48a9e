"""An environment says what it offers, and refuses by name what it does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from muarl.agents.expert import ExpertAgent
from muarl.basics.errors import ConfigError, DataError, MuarlError, OwnCodeError
from muarl.domains.auditing import UNDECLARED, AuditRules
from muarl.domains.base import Domain
from muarl.domains.tasks import Action, Task
from muarl.domains.tooling import tool
from muarl.environments.environment import Environment
from muarl.environments.play import play_tasks
from muarl.environments.registry import find
from muarl.environments.task_files import FiledTask, write_tasks
from muarl.rollouts.rules import Rules
from muarl.types.chat import Message
from muarl.types.episode import StopReason
from muarl.users.agenda import AgendaUserFactory
from muarl.users.base import User
from muarl_worlds.bfcl.protocol import BfclOfficial


class Library(Domain):
    """Books are lent."""

    name = "library"
    policy = "Lend a book to a member who asks for it."
    database = {"books": {"B1": {"lent_to": None}}}

    @tool(kind="write")
    def lend(self, book: str, member: str) -> str:
        """Lend a book.

        Args:
            book: Its id.
            member: Who takes it.
        """
        self.db["books"][book]["lent_to"] = member
        return "lent"


def made(split: str, index: int, seed: int = 0) -> Task:
    member = f"M{seed}-{index}"
    actions = (Action("lend", {"book": "B1", "member": member}),)
    return Task(f"library-{split}-{seed}-{index}", "library", f"You are {member}; borrow B1.", actions)


def ids(environment: Environment, split: str = "train", number: int = 2, **options: object) -> list[str]:
    return [t.id for t in environment.make_tasks(split, number, **options)]  # type: ignore[arg-type]


def library(**more: object) -> Environment:
    return Environment(**{"name": "library", "domain": Library, "tasks": made, **more})  # type: ignore[arg-type]


def test_a_function_makes_one_task_or_all_of_a_split() -> None:
    wanted = ["library-train-7-4", "library-train-7-5"]
    assert ids(library(), seed=7, start=4) == wanted

    def endless(split: str, *, size: str, seed: int, start: int) -> Iterator[Task]:
        return (made(split, n, seed) for n in count(start))

    def from_the_first(split: str, *, seed: int) -> Iterator[Task]:
        return (made(split, n, seed) for n in count())

    def open_to_more(split: str, **options: int) -> Iterator[Task]:
        return (made(split, n, options["seed"]) for n in count(options["start"]))

    for tasks in (endless, from_the_first, open_to_more):
        found = library(tasks=tasks)
        assert ids(found, seed=7, start=4) == wanted and found.endless


def test_tasks_may_be_a_mapping_or_a_file(tmp_path: Path) -> None:
    mapping = library(tasks={"train": [made("train", 0), made("train", 1)], "test": [made("test", 0)]})
    assert ids(mapping, number=9) == ["library-train-0-0", "library-train-0-1"] and not mapping.endless
    assert ids(mapping, "test") == ["library-test-0-0"] and ids(mapping, start=1, number=9) == ["library-train-0-1"]
    with pytest.raises(ConfigError, match="library has no tasks for the split 'validation'; it has train, test"):
        ids(mapping, "validation")
    file = tmp_path / "tasks.jsonl"
    write_tasks(file, [FiledTask(made("any", n), confirmed=True) for n in range(20)])
    found = library(tasks=file)
    both = ids(found, number=99) + ids(found, "test", number=99)
    assert sorted(both) == sorted(f"library-any-0-{n}" for n in range(20))
    file.write_text("{}\n", encoding="utf-8")
    with pytest.raises(DataError, match="tasks.jsonl"):
        ids(library(tasks=file))


def test_a_domain_is_a_class_an_instance_or_a_function_of_a_size() -> None:
    one = Library()
    assert library(domain=one).make_domain() is one
    found = library()
    assert isinstance(found.make_domain(), Library)
    assert found.make_domain("tiny") is found.make_domain("official")  # it comes in one size
    sized = library(domain=lambda size: Library(policy=f"A {size} library."), sizes=("small", "large"))
    assert sized.make_domain().policy_text == "A small library." and sized.make_domain("large") is not one
    with pytest.raises(ConfigError, match="domain.size is tiny; the sizes of library are small, large"):
        sized.make_domain("tiny")
    with pytest.raises(ConfigError, match="the sizes of .* are small, large"):
        ids(sized, size="tiny")


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"tasks": lambda split, index: 3}, "environment library: tasks gave a int, not a Task"),
        ({"tasks": lambda split: iter("ab")}, "environment library: tasks gave a str, not a Task"),
        ({"domain": lambda size: 3}, "environment library: domain gave a int, not a Domain"),
    ],
)
def test_functions_that_give_something_else_are_told(broken: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ids(library(**broken)), library(**broken).make_domain()


def test_what_it_does_not_offer_is_refused_by_name_with_what_to_do() -> None:
    bare = library()
    with pytest.raises(
        ConfigError, match="library has no rule-based user: give --user endpoint:MODEL .*eval_user.kind=llm"
    ):
        bare.needed_user("eval_user")
    with pytest.raises(ConfigError, match="library has no scripted expert: let a model serve"):
        bare.needed_expert()
    with pytest.raises(ConfigError, match="library has no red-team tasks"):
        bare.red_team_source()
    with pytest.raises(ConfigError, match="library is not a benchmark"):
        bare.official()


def test_what_it_offers_is_given() -> None:
    retail = find("retail-generated")
    assert retail.needed_user() is retail.rule_based_user and retail.needed_expert() is retail.expert
    telecom = find("tau2-telecom")
    assert telecom.needed_expert() is find("telecom-generated").expert and telecom.is_benchmark
    assert telecom.splits[0] == "base" and BfclOfficial.chosen_mode("auto", "bfcl-v3", sampled=True) == "qwen"
    with pytest.raises(ConfigError, match="bfcl-v3 is played in mode native or qwen or text, not text-api"):
        find("bfcl-v3").place(mode="text-api")


def test_audit_rules_are_its_own_or_else_the_domains() -> None:
    own, declared = AuditRules(consent=False), AuditRules(one_person=False)

    class Declaring(Library):
        audit = declared

    assert library().audit_rules() == UNDECLARED and library(audit=own).audit_rules() == own
    assert not library(domain=Declaring).audit_rules(Declaring()).one_person
    assert not library(audit=own).audit_rules(Declaring()).consent


def test_functions_that_cannot_be_called_are_refused_when_the_environment_is_made() -> None:
    for part, wrong, told in (
        ("rule_based_user", lambda task: None, r"rule_based_user must take \(task, \*, seed, persona=None\)"),
        ("rule_based_user", lambda task, seed: None, "persona"),
        ("expert", lambda: None, r"expert must take \(\*, seed, error_profile\)"),
        ("tasks", lambda: None, r"tasks must take \(split, index, seed\) or"),
        ("tasks", lambda split, index, shop: None, "tasks must take"),
    ):
        with pytest.raises(ConfigError, match=f"environment library: .*{told}"):
            library(**{part: wrong})
    assert library(rule_based_user=lambda task, **options: None, expert=lambda **options: None).expert is not None


def test_tasks_of_another_domain_and_ids_that_return_are_refused() -> None:
    other = library(tasks=lambda split, index: replace(made(split, index), domain="museum"))
    with pytest.raises(ConfigError, match="library-test-0-0 is of the domain 'museum', and must be of 'library'"):
        other.make_tasks("test", 1)
    same = library(tasks=lambda split, index: replace(made(split, index), id="one"))
    assert len(same.make_tasks("test", 1)) == 1
    with pytest.raises(ConfigError, match="more than one has the id 'one': let ids end in"):
        same.make_tasks("test", 2)
    for wrong, told in (({"test": made("test", 0)}, "is a Task, not a list"), ({"test": ["lend"]}, "gave a str")):
        with pytest.raises(ConfigError, match=told):
            library(tasks=wrong).make_tasks("test", 1)


def broken_tasks(split: str, index: int) -> Task:
    if index == 1:
        raise KeyError("isbn")
    return made(split, index)


def broken_user(task: Task, *, seed: int, persona: str | None = None) -> User:
    raise ZeroDivisionError("no patience")


class BrokenRules(Rules):
    """With a bug."""

    def read_agent(self, message: Message, stop: StopReason | None, steps: int) -> tuple[Message, StopReason | None]:
        return message, [stop][1]


def line_of(text: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip() == text)


def test_a_bug_in_its_tasks_is_told_with_its_place() -> None:
    with pytest.raises(OwnCodeError, match="environment library: its function for tasks has a bug: KeyError") as told:
        library(tasks=broken_tasks).make_tasks("train", 3)
    line = line_of('raise KeyError("isbn")')
    assert str(told.value).endswith(f"({__file__}, line {line})")


def test_a_bug_in_its_user_is_told_with_its_place() -> None:
    users = AgendaUserFactory(library(rule_based_user=broken_user).needed_user())
    with pytest.raises(OwnCodeError, match="environment library: its rule_based_user has a bug: ZeroDivision") as told:
        users(made("train", 1), seed=1)
    line = line_of('raise ZeroDivisionError("no patience")')
    assert str(told.value).endswith(f"({__file__}, line {line})")


async def test_a_bug_in_its_rules_is_told_with_its_place() -> None:
    shop = find("retail-generated")
    (task,) = shop.make_tasks("train", 1)
    said = r"environment retail: its rules \(BrokenRules.read_agent\) has a bug: IndexError"
    with pytest.raises(MuarlError, match=said) as told:
        await play_tasks(replace(shop, rules=BrokenRules()), ExpertAgent(make=shop.expert), [task])
    line = line_of("return message, [stop][1]")
    assert str(told.value).endswith(f"({__file__}, line {line})")
