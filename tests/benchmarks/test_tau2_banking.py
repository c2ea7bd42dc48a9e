"""banking_knowledge's 97 tasks against digests of what the original code answered (tau2-bench a2c0247, Python 3.12)."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from functools import cache

import pytest

from muarl.basics.errors import ConfigError, DataError
from muarl.retrieval.grep import GrepSearch
from muarl.retrieval.variants import variant
from muarl.rewards.gold import gold_world
from muarl.rewards.outcome import check, do_nothing
from muarl.rewards.replay import replay
from muarl.types.chat import Message, ToolCall
from muarl_worlds import data, install
from muarl_worlds.tau import tau2_benchmark as tau2
from muarl_worlds.tau.banking.retrieval import policy
from muarl_worlds.tau.banking.shell.files import files_of

NAME = "banking_knowledge"
DONE_BY_NOTHING = {"task_004", "task_008", "task_012", "task_014"}
"""Tasks whose gold actions change no database."""


@pytest.fixture(scope="module")
def domain(installed):
    return tau2.domain(NAME)


def digest(*lines):
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


def short(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.mark.data
def test_without_its_own_data_the_domain_says_so_and_the_others_work(shared_data, tmp_path, monkeypatch):
    source = tmp_path / "source"
    shutil.copytree(shared_data / "tau2", source, ignore=shutil.ignore_patterns(NAME))
    monkeypatch.setenv("MUARL_DATA", str(tmp_path / "data"))
    install.add("tau2", source)
    assert len(tau2.tasks("mock", None)) > 0
    for use in (tau2.domain, tau2.tasks, tau2.splits):
        with pytest.raises(DataError, match=f"{NAME}.*Run `muarl data fetch tau2` to install all of tau2"):
            use(NAME)


def test_the_manifest_has_all_of_its_files():
    files = [f for f in data.manifest("tau2").files if f.startswith(f"domains/{NAME}/")]
    assert sum("/documents/" in f for f in files) == 698 and sum("/tasks/" in f for f in files) == 97
    assert len(files) == 698 + 97 + 17 + 1 and data.manifest("tau2").groups()[f"domains/{NAME}"] == files


@pytest.mark.data
def test_the_tasks_are_the_official_ones(installed):
    tasks = tau2.tasks(NAME)
    assert len(tasks) == 97 and tasks[0].id == "task_001" and tasks[-1].id == "task_102"
    assert set(tau2.splits(NAME)) == {"base"} and len(tau2.tasks(NAME, None)) == 97
    bases = [t.reward_basis for t in tasks]
    assert bases.count(("DB",)) == 87 and bases.count(("ACTION",)) == 9 and bases.count(("DB", "NL_ASSERTION")) == 1
    assert tasks[0].user_tools is not None and all("required_documents" in t.tags for t in tasks)


@pytest.mark.data
def test_gold_replays_have_the_originals_texts_hashes_and_rewards(domain):
    assert domain.world().full_hash() == "af324a7d72aced5889daf6cc044e573ad94ffa3bfe7cf65114fd3cfed5daaa48"
    texts, gold, untouched = [], [], []
    for task in tau2.tasks(NAME):
        world, messages = domain.world(task), []
        untouched.append(f"{task.id} {world.full_hash()}")
        for number, action in enumerate(task.actions):
            call = ToolCall(str(number), action.name, action.arguments, action.requestor)
            answer = world.call(action.requestor, call)
            texts.append(f"{task.id} {answer.content}")
            messages.append(Message(action.requestor, None, (call,)))
            messages.append(Message("tool", answer.content, tool_call_id=call.id, requestor=action.requestor))
        gold.append(f"{task.id} {world.full_hash()}")
        assert world.full_hash() == gold_world(domain, task).full_hash()
        again = domain.world(task)
        replay(again, messages)
        found = check(task, again, messages, everything=True)
        assert found.part("DB") == found.part("ACTION") == 1.0
        empty = check(task, domain.world(task), (), everything=True)
        assert empty.part("DB") == (task.id in DONE_BY_NOTHING) and empty.part("ACTION") == 0.0
    assert len(texts) == 955
    assert digest(*texts) == "310315cd95189291e251c47376fa6a7e3596672cdffb679308477fb0043c1b5a"
    assert digest(*gold) == "cfbd3856ede2d41722694f032bcb87b59133698aa230c6cd215207ef2e8840b3"
    assert digest(*untouched) == "95b801e6bf9502b374ba777290575dc2da9b8817dc47585fb62f709a68be1536"


@pytest.mark.data
async def test_doing_nothing_earns_nothing(domain):
    for task in tau2.tasks(NAME):
        if "NL_ASSERTION" not in task.reward_basis:
            assert (await do_nothing(domain, task)).reward == 0.0


@pytest.mark.data
def test_schemas_descriptions_and_policies_are_the_originals(domain, installed):
    tools = [spec.to_openai() for side in ("assistant", "user") for spec in domain.tool_specs(side)]
    assert short(json.dumps(tools)) == "595e71203130c2d7"
    world = domain.world()
    shown = [
        world.call("assistant", ToolCall("c", "unlock_discoverable_agent_tool", {"agent_tool_name": name})).content
        for name in domain.discoverables
    ]
    assert short("\n".join(shown)) == "c2d14f5697ff0285"
    for name, expected in (
        ("no_knowledge", "03c468b433109e52"),
        ("full_kb", "22b909afdef971a8"),
        ("bm25_grep", "3417396339ae4367"),
        ("bm25", "430e719f33d87660"),
        ("grep_only", "24ef71b87dbe5be0"),
        ("qwen_embeddings_grep", "61e1e7ab5690d97b"),
        ("openai_embeddings_grep", "7ba091450240b693"),
        ("qwen_embeddings_reranker", "03e021e355ce65b7"),
        ("openai_embeddings", "09b031d5370e3dbe"),
        ("bm25_reranker_grep", "3417396339ae4367"),
        ("terminal_use", "3c33b5bacdf90ff8"),
        ("terminal_use_write", "a861692f2cf25a46"),
        ("alltools", "a097943f9b9d8823"),
        ("alltools-qwen", "99d1d2d1b1b77488"),
    ):
        assert short(tau2.domain(NAME, retrieval=name).policy_text) == expected
    chosen = {"retrieval": "golden_retrieval", "required_documents": tau2.tasks(NAME)[0].tags["required_documents"]}
    first = tau2.domain(NAME, **chosen).policy_text
    read = cache(lambda file: (installed / "domains" / NAME / "prompts" / file).read_text(encoding="utf-8"))
    golden = {
        t.id: policy(variant("golden_retrieval"), read, lambda: domain.knowledge, t.tags["required_documents"])
        for t in tau2.tasks(NAME)
    }
    assert first == golden["task_001"]
    assert short("\n".join(f"{i} {text}" for i, text in golden.items())) == "ab18b5f6e857e703"
    by_task = tau2.domain(NAME).with_retrieval("golden_retrieval")
    assert by_task.policy_by_task
    assert {t.id: by_task.policy_for(t) for t in tau2.tasks(NAME)} == golden
    for name, expected in (("alltools", "4f71e7ef55edb9ca"), ("terminal_use", "dadf0ebe1dbf7180")):
        specs = tau2.domain(NAME, retrieval=name).tool_specs()
        assert short(json.dumps([spec.to_openai() for spec in specs])) == expected
    with pytest.raises(ConfigError, match="telepathy"):
        tau2.domain(NAME, retrieval="telepathy")


@pytest.mark.data
def test_documents_are_the_originals_files_in_the_shell(domain):
    files = dict(files_of(domain.knowledge))
    assert len(files) == 699 and short(json.dumps(files, sort_keys=True)) == "2813ca66f8b9d8ba"


@pytest.mark.data
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_grep_counts_what_re_counts(domain):
    """Also where the regex package would not ("CO₂" ends with no word's end in it)."""
    documents = domain.knowledge.documents
    for pattern in (
        r"\bCO\b",
        r"(\w+)\s+\1",
        "credit.*card",
        r"[[:alpha:]]+",
        r"\$\d+(\.\d\d)?",
        "fee{e<=1}",
        r"(?i:apy)\b",
    ):
        wanted = re.compile(pattern, re.IGNORECASE)
        counts = sorted(((d.id, len(wanted.findall(d.content))) for d in documents), key=lambda c: -c[1])
        hits = GrepSearch(domain.knowledge).search(pattern, 1000)
        assert [(hit.document.id, hit.score) for hit in hits] == [c for c in counts if c[1]]


@pytest.mark.data
@pytest.mark.parametrize(
    ("tool", "text", "expected"),
    [
        ("KB_search", "transfer to human agent reason", "2d1622c91466"),
        ("KB_search", "the of and to a", "164eca5c5a85"),
        ("KB_search", "zzz", "8098f3a07497"),
        ("KB_search", " ", "8398bf428a2f"),
        ("KB_search", "11/13 backend incident transfer", "c5303801dc98"),
        ("grep", "credit.*card", "f22b5336e34d"),
        ("grep", "(", "4884f779b538"),
        ("grep", r"\bATM\b", "4323e0f2118a"),
        ("grep", "zzzzq", "2723c780db8c"),
    ],
)
def test_searches_find_what_the_original_finds(domain, tool, text, expected):
    argument = "query" if tool == "KB_search" else "pattern"
    shown = domain.world().call("assistant", ToolCall("c", tool, {argument: text})).content
    assert hashlib.sha256(re.sub(r"\[Timing.*", "", shown).encode()).hexdigest()[:12] == expected
