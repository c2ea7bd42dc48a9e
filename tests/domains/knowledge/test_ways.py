"""The section ``retrieval`` in domains with documents: which variants there are, what they find, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from muarl.agents.expert import ExpertAgent
from muarl.audit.episodes import audit_episode
from muarl.basics.errors import ConfigError
from muarl.config.rollout import RetrievalConfig
from muarl.domains.base import Domain, World
from muarl.domains.knowledge.domain import KnowledgeDomain, with_documents
from muarl.domains.knowledge.ways import OFFERED
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl.environments.recorded_episodes import replay_recorded
from muarl.environments.registry import find, load_reference
from muarl.environments.retrieval import as_recorded, searched
from muarl.retrieval.documents import Document
from muarl.retrieval.embedders import HashedEmbedder
from muarl.rewards.gold import check_tasks, gold_digest
from muarl.types.chat import ToolCall
from muarl.types.episode import Episode
from support.fake_openai import FakeOpenAI, json_answer
from support.kit import play

STARTER = Path(__file__).parents[3] / "src/muarl/assets/starter_knowledge/marina.py"
BANK = "bank-knowledge-generated"


@cache
def environment_of(name: str) -> Environment:
    return load_reference(f"{STARTER}:MARINA") if name == "marina" else find(name)


def section(**values: Any) -> RetrievalConfig:
    return RetrievalConfig.model_validate(values)


def call(world: World, name: str, **arguments: Any) -> str:
    return world.call("assistant", ToolCall("1", name, arguments)).content


def searches(domain: Domain) -> set[str]:
    return {"KB_search", "grep"} & set(domain.tool_names())


@pytest.mark.parametrize(("name", "size"), [(BANK, "small"), ("marina", "small")])
def test_variants_decide_which_searches_there_are(name: str, size: str) -> None:
    domain = environment_of(name).make_domain(size)
    for variant in OFFERED:
        made = searched(domain, section(variant=variant))
        wanted = {"grep"} if variant == "grep_only" else {"KB_search"} | ({"grep"} if "grep" in variant else set())
        assert searches(made) == wanted, variant
        assert {s.name for s in made.tool_specs()} - wanted == {s.name for s in domain.tool_specs()} - searches(domain)
        assert made.waits == ("embeddings" in variant or "reranker" in variant)
        assert made.policy_text == domain.policy_text
    assert searches(domain) == {"KB_search", "grep"} and not domain.waits, "the domain itself stays as it is"


def test_the_defaults_are_the_domains_own() -> None:
    for name, size in ((BANK, "tiny"), (BANK, "small"), ("marina", "small")):
        domain = environment_of(name).make_domain(size)
        assert searched(domain, section()) is domain
        task = environment_of(name).task("train", 0, size=size)
        for query in ("fee", "Procedure for closing Card accounts", "winter places", "no such word"):
            usual = call(domain.world(task), "KB_search", query=query)
            assert call(searched(domain, section(variant="bm25")).world(task), "KB_search", query=query) == usual


@pytest.mark.parametrize(
    ("name", "size", "variant", "said"),
    [
        (BANK, "small", "full_kb", "a prompt of TAU2's bank; take one of qwen_embeddings_grep, .*, grep_only$"),
        ("marina", "small", "alltools", "'alltools': it needs a shell, which only TAU2's bank has; take one of"),
        (BANK, "small", "telepathy", "there is no such variant; take one of"),
        (
            BANK,
            "tiny",
            "bm25_grep",
            r"does not offer grep \(at this size\); take one of [\w, ]+, bm25, bm25_reranker$",
        ),
    ],
)
def test_a_variant_that_makes_no_sense_is_refused_with_those_that_do(
    name: str, size: str, variant: str, said: str
) -> None:
    domain = environment_of(name).make_domain(size)
    with pytest.raises(ConfigError, match=rf"^retrieval\.variant: [\w-]+ cannot be searched by .*{said}"):
        searched(domain, section(variant=variant))


def test_how_many_documents_are_shown() -> None:
    domain = environment_of(BANK).make_domain("small")
    task = environment_of(BANK).task("train", 0, size="small")

    def shown(domain: Domain, tool: str, argument: str) -> int:
        return call(domain.world(task), tool, **{argument: "fee"}).count("   ID: ")

    for variant in (None, "bm25_grep"):
        few = searched(domain, section(variant=variant, top_k=2, grep_top_k=4))
        assert (shown(few, "KB_search", "query"), shown(few, "grep", "pattern")) == (2, 4)
    assert (shown(domain, "KB_search", "query"), shown(domain, "grep", "pattern")) == (10, 10)
    tiny, small_task = environment_of(BANK).make_domain("tiny"), environment_of(BANK).task("train", 0, size="tiny")
    world = searched(tiny, section(variant="bm25")).world(small_task)
    shown_there = call(world, "KB_search", query="fee").splitlines()
    assert len(shown_there) == world.toolkit().company.size.top_k < 10
    strict = searched(domain, section(variant="grep_only", case_sensitive=True))
    assert call(strict.world(task), "grep", pattern="FEE") == "Nothing in the documents matches."


async def test_an_index_is_made_once_for_all_worlds_of_a_company() -> None:
    class Counting(HashedEmbedder):
        asked: list[str] = []

        async def documents(self, texts: Sequence[str]) -> Any:
            self.asked.extend(texts)
            return await super().documents(texts)

    plain = environment_of(BANK).make_domain("small")
    assert isinstance(plain, KnowledgeDomain)
    domain = plain.with_retrieval("openai_embeddings_grep", embedder=Counting(64), top_k=1)
    tasks = environment_of(BANK).make_tasks("test", 2, size="small")
    for task in tasks:
        documents = domain.world(task).toolkit().knowledge.documents
        result = await domain.world(task).acall(
            "assistant", ToolCall("1", "KB_search", {"query": documents[7].content})
        )
        assert f"ID: {documents[7].id}\n" in result.content and result.content.count("   ID: ") == 1
    companies = {id(domain.world(task).toolkit().company): len(documents) for task in tasks}
    assert len(Counting.asked) == sum(companies.values())


def test_a_models_order_and_what_was_asked_of_it(tmp_path: Path) -> None:
    def serve(body: dict[str, Any]) -> Any:
        if "input" in body:
            rows = [{"index": n, "embedding": [1.0, float("hall" in text)]} for n, text in enumerate(body["input"])]
            return json_answer({"data": rows, "usage": {"prompt_tokens": 5, "total_tokens": 5}})
        rows = [{"index": n, "relevance_score": len(text)} for n, text in enumerate(body["documents"])]
        return json_answer({"results": rows})

    with FakeOpenAI(serve) as server:
        ends = {"model": "m", "base_url": server.url, "api_key_env": ""}
        wanted = section(
            variant="openai_embeddings_reranker", embedding_endpoint=ends, reranker_endpoint=ends,
            reranker_kind="rerank", top_k=3, cache=str(tmp_path),
        )  # fmt: skip
        domain = searched(environment_of("marina").make_domain("small"), wanted)
        shown = call(domain.world(environment_of("marina").task("train", 0)), "KB_search", query="hall")
        lengths = [len(part.partition("Content: ")[2]) for part in shown.split("\n\n")]
        assert shown.count("   ID: ") == 3 and shown.count("hall") >= 1, lengths
        assert {asked.path for asked in server.requests} == {"/v1/embeddings", "/v1/rerank"}
        assert domain.searching_usage.requests == len(server.requests)  # type: ignore[attr-defined]


def test_gold_actions_are_replayed_without_searching() -> None:
    class Never(HashedEmbedder):
        async def query(self, text: str) -> Any:
            raise AssertionError("a replay asks nobody")

    plain = environment_of(BANK).make_domain("small")
    assert isinstance(plain, KnowledgeDomain)
    tasks = environment_of(BANK).make_tasks("test", 6, size="small")
    assert any(a.name == "KB_search" for task in tasks for a in task.actions or ())
    for domain in (plain.with_retrieval("openai_embeddings", embedder=Never()), plain.with_retrieval("grep_only")):
        assert check_tasks(domain, tasks) == 0
        assert [gold_digest(domain, task) for task in tasks] == [gold_digest(plain, task) for task in tasks]


def played(environment: Environment, domain: Domain, task: Task) -> Episode:
    there = replace(environment, domain=lambda size: domain)
    return play(there, ExpertAgent(make=environment.expert), [task], "small")[0]


def test_audits_go_by_the_documents_however_the_agent_finds_them() -> None:
    environment = environment_of("marina")
    plain = environment.make_domain("small")
    assert isinstance(plain, KnowledgeDomain)
    domain = plain.with_retrieval("openai_embeddings_grep", embedder=HashedEmbedder())
    for task in environment.make_tasks("test", 6, size="small"):
        episode = played(environment, plain, task)
        found = [
            [f.rule for f in audit_episode(episode, task, domain=d, rules=environment.audit_rules(d))]
            for d in (plain, domain)
        ]
        assert found[0] == found[1]


def test_an_episode_is_run_again_as_it_was_searched() -> None:
    environment = find(BANK)
    config = {"domain": {"name": BANK, "size": "small"}, "retrieval": {"variant": "bm25", "top_k": 2}}
    plain = environment.make_domain("small")
    again = as_recorded(plain, config)
    task = environment.task("test", 1, size="small")
    assert searches(again) == {"KB_search"}
    assert call(again.world(task), "KB_search", query="fee").count("   ID: ") == 2
    assert as_recorded(plain, {"retrieval": RetrievalConfig().model_dump()}) is plain
    episode = played(environment, again, task)
    assert replay_recorded(episode, config) is not None


def test_a_planted_document_is_found_in_every_way() -> None:
    plain = environment_of("marina").make_domain("small")
    assert isinstance(plain, KnowledgeDomain)
    task = environment_of("marina").task("train", 0, size="small")
    base = (task.database or plain.base).derive(with_documents([Document("x", "X", "zebra crossing")]))
    planted = replace(task, database=base)
    for variant in ("bm25", "openai_embeddings"):
        domain = plain.with_retrieval(variant, embedder=HashedEmbedder(), top_k=1)
        assert "zebra" in call(domain.world(planted), "KB_search", query="zebra crossing")
        assert "zebra" not in call(domain.world(task), "KB_search", query="zebra crossing")
    assert "zebra" in call(plain.with_retrieval("grep_only").world(planted), "grep", pattern="zeb.a")
