"""How the configuration's section ``retrieval`` reaches a domain, and what of it is asked and priced."""

from __future__ import annotations

from pathlib import Path

import pytest

from muarl.basics.errors import ConfigError
from muarl.config.load import load_config
from muarl.config.rollout import RetrievalConfig
from muarl.config.sections import RunConfig
from muarl.domains.tasks import Task
from muarl.environments.registry import find
from muarl.environments.retrieval import as_recorded, models_of, searched, with_models
from muarl.retrieval.embedders import HashedEmbedder
from muarl.retrieval.reranking import EndpointReranker, RatingReranker
from muarl.runs.prices import Bounds, check_prices, with_prices
from muarl.runs.roles import Cast
from muarl_worlds.tau.protocol import tau2
from support.small_bank import bank, use


def section(**values):
    return RetrievalConfig.model_validate(values)


def test_what_is_left_out_changes_nothing():
    domain = bank()
    assert searched(domain, None) is domain and searched(domain, section()) is domain
    told = RetrievalConfig.model_validate(RetrievalConfig().model_dump())  # as a run's folder keeps it
    assert searched(find("retail-generated").make_domain("tiny"), told).name == "retail"


def test_a_domain_is_searched_as_the_section_says(tmp_path):
    domain = searched(
        bank(), section(variant="alltools", top_k=2, embedding_checkpoint="hashed", cache=str(tmp_path / "c"))
    )
    assert domain.retrieval == "alltools" and domain.top_k == 2
    assert isinstance(domain.finding.embedder, HashedEmbedder)
    assert domain.world().call is not None and domain.finding.ranked.cache.folder == tmp_path / "c"


def test_rerankers_are_of_two_kinds():
    rated = searched(bank(), section(variant="bm25_reranker", reranker_endpoint={"model": "m"}))
    assert isinstance(rated.finding.reranker, RatingReranker) and rated.finding.ranked.least == 5
    ranked = searched(
        bank(),
        section(
            variant="bm25_reranker", reranker_endpoint={"model": "m"}, reranker_kind="rerank", reranker_min_score=9
        ),
    )
    assert isinstance(ranked.finding.reranker, EndpointReranker) and ranked.finding.ranked.least is None


def test_a_report_names_the_models_that_stand_in_for_the_originals():
    assert searched(bank(), with_models(section(variant="qwen_embeddings_reranker"))).retrieval_text == (
        "qwen_embeddings_reranker"
    )
    mine = section(variant="qwen_embeddings_reranker", embedding_checkpoint="hashed", reranker_endpoint={"model": "m"})
    assert searched(bank(), mine).retrieval_text == (
        "qwen_embeddings_reranker; embeddings by hashed 256; reranked by m"
    )


def test_what_cannot_be_is_said_with_the_setting():
    with pytest.raises(ConfigError, match=r"retrieval\.variant: must be one of no_knowledge, .*, not 'telepathy'"):
        searched(bank(), section(variant="telepathy"))
    with pytest.raises(ConfigError, match="retrieval: retail has no documents to search"):
        searched(find("retail-generated").make_domain("tiny"), section(top_k=3))
    with pytest.raises(ConfigError, match="no checkpoint there"):
        searched(bank(), section(variant="qwen_embeddings", embedding_checkpoint="/nowhere"))


@pytest.mark.parametrize(
    "values",
    [
        {"reranker_kind": "rerank"}, {"embedding_endpoint": {"base_url": "http://localhost:1/v1"}}, {"top_k": 0},
        {"embedding_endpoint": {"model": "m"}, "embedding_checkpoint": "hashed"},
        {"reranker_min_score": 11}, {"shell": True},
    ],
)  # fmt: skip
def test_settings_that_do_not_fit_are_refused(values):
    with pytest.raises(ConfigError, match="retrieval"):
        load_config("quickstart", [f"retrieval={values}".replace("'", '"')])


def test_the_models_of_a_variant_are_known():
    assert models_of(section(variant="bm25_grep")) == {} == models_of(section())
    own = models_of(section(variant="qwen_embeddings_reranker"))
    assert own["retrieval.embedding_endpoint"].api_key_env == "OPENROUTER_API_KEY"
    assert own["retrieval.embedding_endpoint"].base_url == "https://openrouter.ai/api/v1"
    assert (
        own["retrieval.reranker_endpoint"].model == "gpt-5.2" and own["retrieval.reranker_endpoint"].temperature is None
    )
    assert own["retrieval.reranker_endpoint"].extra["reasoning_effort"] == "low"
    assert models_of(section(variant="qwen_embeddings", embedding_checkpoint="hashed")) == {}
    given = section(
        variant="openai_embeddings", embedding_endpoint={"model": "mine", "base_url": "http://localhost:1/v1"}
    )
    assert with_models(given) is given and models_of(given)["retrieval.embedding_endpoint"].model == "mine"


def test_a_bound_on_the_cost_wants_their_prices():
    told = ["domain.name=tau2-banking_knowledge", "retrieval.variant=openai_embeddings", "eval.agent=idle"]
    with pytest.raises(ConfigError, match="what text-embedding-3-large costs is not known"):
        with_prices(load_config("quickstart", [*told, "eval.max_cost=1"]))
    priced = with_prices(load_config("quickstart", [*told, "eval.prices={text-embedding-3-large: [0.1, 0]}"]))
    assert priced.retrieval.embedding_endpoint.prompt_price == 0.1
    bounded = load_config("quickstart", [*told, "budget.max_cost=1"])
    with pytest.raises(ConfigError, match=r"retrieval\.embedding_endpoint \(text-embedding-3-large\)"):
        check_prices(Cast.of(bounded), Bounds.of(bounded))


def test_a_file_may_not_send_a_key_to_a_server_that_it_is_not_for(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("OPENROUTER_API_KEY", "secret")
    file = tmp_path / "run.yaml"
    file.write_text(
        "extends: quickstart\nretrieval:\n  embedding_endpoint:\n    model: m\n    base_url: https://evil.example/v1\n"
        "    api_key_env: OPENROUTER_API_KEY\n",
        encoding="utf-8",
    )
    with pytest.raises(
        ConfigError, match=r"retrieval\.embedding_endpoint would send the key in OPENROUTER_API_KEY to evil"
    ):
        load_config(str(file), [])


def test_an_episode_is_run_again_with_its_tools_and_without_asking_anybody():
    domain = bank("fixed")
    again = as_recorded(domain, {"retrieval": {"variant": "alltools-qwen"}})
    assert again.tool_names()[:3] == ("KB_search_bm25", "KB_search_dense", "shell")
    shown = use(again.world(), "KB_search_dense", query="debit card").content
    assert shown.startswith("1. Cards") and again.searching_usage.requests == 0
    rated = as_recorded(domain, {"retrieval": {"variant": "bm25_reranker"}})
    assert use(rated.world(), "KB_search", query="fee").content.startswith("1. Fees")
    for config in ({}, {"retrieval": None}, {"retrieval": {"variant": "telepathy"}}):
        assert as_recorded(domain, config) is domain
    retail = find("retail-generated").make_domain("tiny")
    assert as_recorded(retail, {"retrieval": {"variant": "bm25"}}) is retail


def test_the_preset_is_the_published_protocol():
    config: RunConfig = load_config("banking-bm25-grep", [])
    assert config.domain.name == "tau2-banking_knowledge" and config.retrieval.variant == "bm25_grep"
    assert config.eval.trials == 5 and config.eval.tasks is None and config.eval.split == "base"


def test_a_policy_of_each_task_stands_in_the_benchmarks_frame(monkeypatch):
    files = {"required_docs.md": "Rules. {{required_documents}}"}
    monkeypatch.setattr("muarl_worlds.tau.banking.domain._prompt", files.__getitem__)
    domain = bank(retrieval="bm25").with_retrieval("golden_retrieval")
    benchmark = tau2("banking_knowledge")
    assert benchmark.prompt_around(domain) is None and benchmark.prompt_around(domain, "Other") is not None
    task = Task("t", "banking_knowledge", "", (), tags={"required_documents": ["Loans"]})
    shown = benchmark.measured(domain, "native", name=benchmark.name).system_prompt(task)
    assert "Rules. ## Loans\n\nNothing to see here." in shown and "<policy>" in shown
    assert benchmark.prompt_around(bank(policy="Be kind.")) is not None


def test_the_models_of_searches_are_asked_before_the_run():
    from muarl.basics.errors import InfrastructureError
    from muarl.runs.roles import ask_searching
    from support.fake_openai import FakeOpenAI, json_answer, status

    def serve(body):
        if body["model"] == "broken":
            return status(404, message="no such model")
        if "input" in body:
            return json_answer({"data": [{"index": 0, "embedding": [1.0]}]})
        return json_answer({"results": [{"index": 0, "relevance_score": 0.5}]})

    with FakeOpenAI(serve) as server:

        def told(model):
            ends = {"model": model, "base_url": server.url, "api_key_env": ""}
            return section(
                variant="openai_embeddings_reranker", embedding_endpoint={**ends, "model": "e"}, reranker_endpoint=ends,
                reranker_kind="rerank",
            )  # fmt: skip

        ask_searching(load_config("quickstart", []).retrieval)
        assert server.requests == []
        ask_searching(told("r"))
        assert [asked.path for asked in server.requests] == ["/v1/embeddings", "/v1/rerank"]
        with pytest.raises(InfrastructureError, match=r"retrieval\.reranker_endpoint: .*broken"):
            ask_searching(told("broken"))
