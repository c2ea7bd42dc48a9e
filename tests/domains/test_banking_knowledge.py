"""Searching the bank's documents, and the policies that go with each way of doing so."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import pytest

from muarl.accounts.budgets import metered
from muarl.basics.errors import ConfigError, DataError
from muarl.endpoints.client import Endpoint
from muarl.retrieval.documents import Document, Knowledge
from muarl.retrieval.embedders import EndpointEmbedder
from muarl.retrieval.grep import GrepSearch
from muarl.retrieval.reranking import RatingReranker
from muarl.retrieval.variants import VARIANTS, variant
from muarl.types.chat import ToolCall
from muarl_worlds.tau.banking.retrieval import policy
from support.fake_openai import FakeOpenAI, json_answer, text
from support.small_bank import DOCUMENTS, bank, use


def test_a_search_shows_the_best_documents_with_scores():
    world = bank(top_k=2).world()
    shown = use(world, "KB_search", query="ATM Fee").content
    assert shown.startswith("1. Fees\n   ID: d1\n   Score: ")
    assert "\n\n2. Cards\n   ID: d2\n   Score: 0.0000\n   Content: Credit card and debit card rules.\n" in shown
    assert shown.endswith("\n\n[Timing: retrieval=0ms, reranking=0ms, total=0ms]") and "Loans" not in shown
    assert use(world, "KB_search", query=" ").content.startswith("No relevant documents found.\n\n[Timing")
    assert use(world, "KB_search", query=5).content == "Error: 'int' object has no attribute 'strip'"
    assert "Timing" not in use(bank("fixed").world(), "KB_search", query="fee").content
    assert use(world, "KB_search").content == (
        "Error: KBSearchMixin.KB_search() missing 1 required positional argument: 'query'"
    )


@pytest.mark.parametrize(
    ("pattern", "ids"),
    [
        ("CARD", ["d2"]),
        ("fee|card", ["d1", "d2"]),
        ("e", ["d1", "d3", "d2"]),
        ("(", []),
        ("$3.", ["d1"]),
        ("", []),
        ("zzz", []),
    ],
)
def test_grep_ranks_by_the_number_of_matches(pattern, ids):
    if pattern == "$3.":
        pattern = r"\$3\."
    assert [document.id for document, _ in GrepSearch(Knowledge(DOCUMENTS)).search(pattern)] == ids
    shown = use(bank().world(), "grep", pattern=pattern).content
    assert [line[7:] for line in shown.splitlines() if line.startswith("   ID: ")] == ids
    assert ids or shown == f"No matches found for pattern: {pattern}"


def test_grep_may_count_case_and_stop_early():
    assert GrepSearch(Knowledge(DOCUMENTS), case_sensitive=True).search("CARD") == []
    assert len(GrepSearch(Knowledge(DOCUMENTS)).search("e", 2)) == 2
    assert "No matches" in use(bank(case_sensitive=True).world(), "grep", pattern="CARD").content


@pytest.mark.parametrize(("name", "tools"), [(n, v.tools) for n, v in VARIANTS.items()])
def test_a_variant_decides_upon_the_search_tools(name, tools):
    domain = bank(retrieval=name, required_documents=())
    assert domain.tool_names()[: len(tools) + 1] == (*tools, "transfer_to_human_agents")
    assert len(domain.tool_names()) == 14 + len(tools)


def test_a_variant_that_there_is_not_is_refused():
    with pytest.raises(ConfigError, match="retrieval: must be one of no_knowledge, full_kb, .*, not 'telepathy'"):
        bank(retrieval="telepathy")
    with pytest.raises(ConfigError, match="needs required_documents"):
        bank(retrieval="golden_retrieval")
    assert bank(retrieval="AllTools").tool_names() == bank(retrieval="alltools").tool_names()


class Letters:
    """Embeddings by the numbers of letters; ``asked``: queries so far."""

    name = "letters"

    def __init__(self):
        self.asked = []

    async def documents(self, texts):
        return np.stack([[text.lower().count(c) + 1.0 for c in "fcln"] for text in texts])

    async def query(self, text):
        self.asked.append(text)
        await asyncio.sleep(0)
        return (await self.documents([text]))[0]

    async def aclose(self):
        pass


class Lengths:
    """Ratings by a document's length, d2 without one."""

    async def scores(self, query, documents):
        return [None if d.id == "d2" else float(len(d.content) // 5) for d in documents]

    async def aclose(self):
        pass


def ids(result):
    return [line[7:] for line in result.content.splitlines() if line.startswith("   ID: ")]


async def called(world, name, **arguments):
    return await world.acall("assistant", ToolCall("c", name, arguments))


@pytest.mark.parametrize("semantics", ["fixed", "official"])
async def test_embeddings_are_searched_in_the_running_event_loop(semantics):
    embedder = Letters()
    domain = bank(semantics, retrieval="qwen_embeddings", embedder=embedder, top_k=2)
    assert domain.waits
    worlds = [domain.world() for _ in range(3)]
    found = await asyncio.gather(*(called(world, "KB_search", query="ffff fee") for world in worlds))
    assert len({result.content for result in found}) == 1 and ids(found[0])[0] == "d1" and len(ids(found[0])) == 2
    assert ("[Timing: " in found[0].content) == (semantics == "official")
    assert ids(use(worlds[0], "KB_search", query="nnnn")) != [] and embedder.asked[-1] == "nnnn"
    wrong = await called(worlds[0], "KB_search")
    assert wrong.error


async def test_an_empty_query_of_embeddings_has_the_originals_words():
    world = bank(retrieval="openai_embeddings", embedder=Letters()).world()
    assert (await called(world, "KB_search", query=" ")).content == (
        "Error: Empty or missing input for key 'query': cannot generate embedding from blank text."
    )
    reranked = bank(retrieval="qwen_embeddings_reranker", embedder=Letters(), reranker=Lengths()).world()
    assert (await called(reranked, "KB_search", query="")).content.startswith("Error: Empty or missing input")
    fixed = bank("fixed", retrieval="openai_embeddings", embedder=Letters()).world()
    assert (await called(fixed, "KB_search", query=" ")).content == "No relevant documents found."


async def test_a_reranker_orders_and_leaves_out():
    world = bank(retrieval="bm25_reranker_grep", reranker=Lengths()).world()
    result = await called(world, "KB_search", query="fee")
    assert ids(result) == ["d1"] and "Score: 8.0000" in result.content  # d3 has 4, d2 none
    everything = bank(retrieval="bm25_reranker", reranker=Lengths(), reranker_min_score=None).world()
    assert ids(await called(everything, "KB_search", query="fee")) == ["d1", "d3"]
    assert ids(use(world, "grep", pattern="card")) == ["d2"]


async def test_all_tools_are_three():
    domain = bank(retrieval="alltools-qwen", embedder=Letters())
    assert domain.tool_names()[:3] == ("KB_search_bm25", "KB_search_dense", "shell")
    world = domain.world()
    assert ids(use(world, "KB_search_bm25", query="fee", k=1)) == ["d1"]
    assert len(ids(await called(world, "KB_search_dense", query="fee", k=2))) == 2
    assert len(ids(await called(world, "KB_search_dense", query="fee"))) == 3
    assert use(world, "shell", command="grep -ril fee . | sort").content == "./INDEX.md\n./d1.md\n"
    wrong = "Error: slice indices must be integers or None or have an __index__ method"
    assert use(world, "KB_search_bm25", query="fee", k="2").content == wrong


def test_the_shell_answers_as_the_originals_tool_does():
    world = bank(retrieval="terminal_use").world()
    assert use(world, "shell", command="cat d2.md").content == "# Cards\n\nCredit card and debit card rules."
    assert use(world, "shell", command="grep zzz d2.md").content == "No matches found."
    assert use(world, "shell", command="true").content == "(no output)"
    assert use(world, "shell", command="false").content == "Command failed with exit code 1"
    assert use(world, "shell", command="cat d9.md").content == (
        "Error (exit code 1): cat: d9.md: No such file or directory\n"
    )
    assert use(world, "shell", command="cat /etc/passwd").content == (
        "Error (exit code 1): Error: Command blocked - contains 'absolute path: /etc/passwd' which could escape the "
        "sandbox"
    )
    assert "Read-only file system" in use(world, "shell", command="echo x > notes.md").content


def test_what_is_written_in_a_shell_is_seen_in_one_conversation_only():
    domain = bank(retrieval="terminal_use_write")
    first, second = domain.world(), domain.world()
    before = first.digest()
    use(first, "shell", command="echo '3 dollars' > notes.md")
    assert use(first, "shell", command="cat notes.md").content == "3 dollars\n" and first.digest() == before
    assert "No such file" in use(second, "shell", command="cat notes.md").content


def test_worlds_and_domains_over_one_collection_share_its_index(monkeypatch):
    from muarl.retrieval import bm25

    made, known = [], Knowledge(DOCUMENTS)
    plain = bm25.BM25
    monkeypatch.setattr(bm25, "BM25", lambda texts: made.append(len(texts)) or plain(texts))
    for name in ("bm25_grep", "bm25", "grep_only"):
        domain = bank(documents=known, retrieval=name)
        for world in (domain.world(), domain.world()):
            if "KB_search" in domain.tool_names():
                assert ids(use(world, "KB_search", query="fee"))[0] == "d1"
    assert made == [3]


async def test_a_bank_is_searched_in_another_way_without_being_read_again():
    domain = bank("fixed")
    other = domain.with_retrieval("qwen_embeddings", embedder=Letters(), top_k=1)
    assert other.policy_text == "Be kind." and domain.retrieval == "bm25_grep" and other.retrieval == "qwen_embeddings"
    assert ids(await called(other.world(), "KB_search", query="fff")) == ["d1"]
    with pytest.raises(ConfigError, match="top_k"):
        domain.with_retrieval("bm25", top_k=0)


async def test_an_endpoint_that_searches_is_paid_and_closed():
    def serve(body):
        if "input" in body:
            rows = [{"index": n, "embedding": [1.0, float(len(t))]} for n, t in enumerate(body["input"])]
            return json_answer({"data": rows, "usage": {"prompt_tokens": len(rows)}})
        return text('{"relevance_score": 9}')

    with FakeOpenAI(serve) as server:
        embedder = EndpointEmbedder(Endpoint.of(f"m@{server.url}", api_key_env=""))
        reranker = RatingReranker(Endpoint.of(f"r@{server.url}", api_key_env=""))
        domain = bank("fixed", retrieval="openai_embeddings_reranker", embedder=embedder, reranker=reranker)
        with metered() as meter:
            result = await called(domain.world(), "KB_search", query="fee")
        assert len(ids(result)) == 3 and meter.besides == domain.searching_usage
        assert meter.besides.requests == 2 + 3 and meter.besides.prompt_tokens == 3 + 1 + 30
        await domain.aclose()


def test_policies_are_put_together_from_their_parts():
    files = {
        "components/head.md": "HEAD {{component:head}}",
        "full_kb.md": "{{component:head}}\n{{full_knowledge_base}}",
        "required_docs.md": "{{component:head}}|{{required_documents}}",
        "grep_only.md": "only {{full_knowledge_base}}",
    }
    known = Knowledge(DOCUMENTS)

    def made(name, *required):
        return policy(variant(name), files.__getitem__, lambda: known, required)

    body = {d.id: f"## {d.title}\n\n{d.content}" for d in DOCUMENTS}
    assert made("full_kb") == "HEAD {{component:head}}\n" + "\n\n---\n\n".join(body.values())
    assert made("golden_retrieval") == "HEAD {{component:head}}|(No documents provided)"
    assert made("golden_retrieval", "Loans", "d1").endswith(f"|{body['d3']}\n\n---\n\n{body['d1']}")
    assert made("grep_only") == "only {{full_knowledge_base}}"
    files["all_tools.md"] = "{{component:head}}: {{all_tools_dense_instructions}}"
    assert made("alltools-qwen").startswith("HEAD {{component:head}}: The `KB_search_dense` tool uses **OpenRouter**")
    with pytest.raises(DataError, match="there is no document 'd9'"):
        made("golden_retrieval", "d9")


def test_documents_are_read_in_the_order_of_their_files(tmp_path):
    for document in reversed(DOCUMENTS):
        row = {"id": document.id, "title": document.title, "content": document.content}
        (tmp_path / f"{document.id}.json").write_text(json.dumps(row), encoding="utf-8")
    assert Knowledge.read(tmp_path).documents == DOCUMENTS
    for broken in ("{", "[]", '{"id": "x", "title": "y"}', '{"id": 1, "title": "y", "content": "z"}'):
        (tmp_path / "odd.json").write_text(broken, encoding="utf-8")
        with pytest.raises(DataError, match=r"odd\.json is no document"):
            Knowledge.read(tmp_path)
    assert Document("a", "b", "c") == Document("a", "b", "c")
