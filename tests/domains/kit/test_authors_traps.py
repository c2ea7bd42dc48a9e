"""What an author could not have known: questions that users hear, facts that find somebody else, ids of one size."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from muarl.agents.expert import ExpertAgent
from muarl.domains.base import Domain
from muarl.domains.generated import parse_id
from muarl.domains.kit.gold import call
from muarl.domains.kit.tasks import TaskMaker
from muarl.domains.tooling import tool
from muarl.environments.play import evaluate
from muarl.kit import Fact, Identity, Maker, Plan, Service, Slot, environment, intent, own, pattern
from muarl.language.values import built_in, pattern_kind

KINDS = built_in("2026-03-14", ("Mia",))


def found(kind: Any, text: str) -> list[Any]:
    return [mention.value for mention in kind.find(text)]


def test_an_address_is_a_number_with_a_street() -> None:
    text = "Send order B-1042 to 2 Elm Street, not to 17b Harbour View Road."
    assert found(KINDS["address"], text) == ["2 Elm Street", "17b Harbour View Road"]
    assert found(KINDS["address"], "12 of my books, $4 Off, B-12 Elm Street") == []


@pytest.mark.parametrize(
    ("expression", "text", "value"),
    [
        (r"B-\d{4}", "b-1042", "B-1042"),
        (r"[a-z.]+@[a-z]+\.com", "Mia@Example.com", "mia@example.com"),
        (r"Row [A-Z]\d", "row B7", "row B7"),
        (r"Row [A-Z]\d", "Row B7", "Row B7"),
    ],
)
def test_a_pattern_is_read_in_the_case_that_it_is_written_in(expression: str, text: str, value: str) -> None:
    assert found(pattern_kind("x", expression), text) == [value]


class Kennel(Domain):
    """Dogs in boarding."""

    name = "kennel"
    policy = "Find the owner first. Before you fetch a dog, say so and wait for a yes."
    database = {
        "owners": {f"O-{n}": {"owner_id": f"O-{n}", "email": f"o{n}@example.com"} for n in range(40)},
        "dogs": {f"D-{n}": {"dog_id": f"D-{n}", "owner_id": f"O-{n % 40}", "fetched": False} for n in range(100, 180)},
    }

    @tool
    def find_owner(self, email: str) -> dict[str, Any]:
        """Find an owner."""
        for _, owner in self.db.owners.scan():
            if owner["email"] == email:
                return owner
        raise ValueError("no such owner")

    @tool(writes=True)
    def fetch_dog(self, dog_id: str) -> dict[str, Any]:
        """Fetch a dog."""
        if dog_id not in self.db.dogs:
            raise ValueError("no such dog")
        self.db.dogs[dog_id]["fetched"] = True
        return self.db.dogs[dog_id]


DOG = Slot("dog", pattern(r"D-\d+"), ask="Which dog is it?", phrase="dog {}", draw=own("dogs", "dog_id"))


@intent(says=("fetch {dog}", "fetch a dog"), slots=[DOG])
def fetch(it: Plan) -> None:
    it.write("fetch_dog", dog_id=it.dog, propose="fetch dog {dog}", done="Dog {dog} is on its way.")


KENNEL = Service(
    domain=Kennel,
    about="A kennel.",
    today="2026-03-14",
    identity=Identity(
        tool="find_owner",
        table="owners",
        key="owner_id",
        facts=(Fact("email", pattern(r"[a-z0-9.]+@example\.com"), tells="I am {email}.", wrong=True),),
        ask="How may I write to you?",  # neither the fact's name nor a question word with it
        say="{email}.",
    ),
    intents=(fetch,),
    outside=(),
)


def made(make: Maker) -> dict[str, Any]:
    tables: dict[str, Any] = {"owners": {}, "dogs": {}}
    for _ in range(make.people):
        owner, dog = make.id("owner", "O-", 4), make.id("dog", "D-", 3)
        email = f"{make.name().lower().replace(' ', '.')}@example.com"
        tables["owners"][owner] = {"owner_id": owner, "email": email}
        tables["dogs"][dog] = {"dog_id": dog, "owner_id": owner, "fetched": False}
    return tables


@pytest.mark.parametrize("tables", [None, made], ids=["own database", "made worlds"])
def test_users_answer_the_expert_however_it_asks_who_they_are(tables: Any) -> None:
    kennel = environment(replace(KENNEL, tables=tables))
    report = asyncio.run(evaluate(kennel, ExpertAgent(make=kennel.expert), tasks=60))
    assert report.success.value == 1.0


def test_the_only_fact_is_wrong_as_nobodys() -> None:
    maker = TaskMaker(replace(KENNEL, tables=made))
    tasks = [maker.task("train", index, size="small") for index in range(60)]
    wrong = [task for task in tasks if (task.agenda or {})["wrong"]]
    assert len(wrong) > 2
    for task in wrong:
        world = maker.worlds.domain.world(task)
        assert call(world, "find_owner", (task.agenda or {})["wrong"]) is None


def test_in_a_database_of_its_own_the_only_fact_is_never_wrong() -> None:
    maker = TaskMaker(KENNEL)
    tasks = [maker.task("train", index, size="tiny") for index in range(40)]
    assert not any((task.agenda or {})["wrong"] or (task.agenda or {})["impostor"] for task in tasks)


def test_ids_of_one_size_say_how_to_make_the_task_again() -> None:
    kennel = environment(KENNEL)
    task = kennel.make_tasks("test", 3, seed=5)[2]
    seeded = parse_id(task.id)
    assert seeded is not None
    assert (seeded.domain, seeded.size, seeded.split, seeded.seed, seeded.index) == ("kennel", "", "test", 5, 2)
    assert kennel.make_tasks("test", 1, seed=5, start=2)[0].scenario == task.scenario
