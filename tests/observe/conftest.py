"""A made-up run that looks like a real one: what the report's tests render and what people look at."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from muarl.accounts.evaluation_report import evaluate_summary
from muarl.audit.metrics import audit
from muarl.observe.rundir import RunDirectory
from muarl.types.chat import GREETING, Message, ToolCall
from muarl.types.episode import Episode, StopReason, TokenTrace, Turn, Usage, Verdict
from muarl_worlds.tau.retail.audit import RETAIL

INTENTS = ("cancel_order", "exchange_items", "modify_address", "return_items", "two_requests", "forbidden", "question")
PERSONAS = ("terse", "chatty", "confused", "impatient")
WRITES = {"cancel_pending_order", "exchange_delivered_order_items", "modify_pending_order_address"}
LONG_ORDER = (
    '{"order_id": "#W7710482", "user_id": "yara_silva_6131", "status": "delivered", "items": ['
    + ", ".join(
        f'{{"name": "{n}", "product_id": "{p}", "item_id": "{i}", "price": {c}}}'
        for n, p, i, c in (("Lamp", 71, 7117010, 45.2), ("Mug", 72, 7117012, 9.5), ("Desk", 73, 7118001, 210.0))
    )
    + '], "payment_history": [{"transaction_type": "payment", "amount": 264.7, "payment_method_id": "card_913"}], '
    '"address": {"street": "12 Elm Street", "city": "Lisbon", "zip": "11002"}}'
)


@dataclass(frozen=True)
class Gold:
    name: str
    arguments: dict[str, Any]
    requestor: str = "assistant"


@dataclass(frozen=True)
class MadeUpTask:
    id: str
    scenario: str
    actions: tuple[Gold, ...] | None
    tags: dict[str, Any] = field(default_factory=dict)
    domain: str = "retail"


def kind_of(name: str) -> str:
    return "write" if name in WRITES else "generic" if name == "transfer_to_human_agents" else "read"


def make_tasks(count: int) -> list[MadeUpTask]:
    draw = random.Random(1)
    tasks = []
    for i in range(count):
        intent = INTENTS[i % len(INTENTS)]
        order = f"#W{7710482 + i}"
        gold: tuple[Gold, ...] = (
            Gold("exchange_delivered_order_items", {
                "order_id": order, "item_ids": ["7117010"], "new_item_ids": ["7117014"],
                "payment_method_id": "credit_card_913",
            }),
        )  # fmt: skip
        if intent == "forbidden":
            gold = ()
        if intent == "cancel_order":
            gold = (Gold("cancel_pending_order", {"order_id": order, "reason": "no longer needed"}),)
        tags = {
            "intent": intent,
            "persona": draw.choice(PERSONAS),
            "difficulty": draw.randint(1, 4),
            "feasible": intent != "forbidden",
        }
        scenario = (
            f"You are Yara Silva, e-mail yara.silva@example.com, in Lisbon, zip 11002.\nYou want to change {order}: "
            "the lamp should be the taller one, in black if there is one, else in white. You pay any difference by the "
            "card you used.\nYou do not remember the item’s number, and you change your mind about the colour once."
        )
        tasks.append(MadeUpTask(f"test-{i:04d}", scenario, gold, tags))
    return tasks


def make_talk(task: MadeUpTask, good: bool, draw: random.Random) -> tuple[list[Message], StopReason]:
    order = f"#W{7710482 + int(task.id[-4:])}"
    out: list[Message] = [Message("assistant", GREETING)]
    count = 0

    def call(name: str, arguments: dict[str, Any], result: str, error: bool = False) -> None:
        nonlocal count
        count += 1
        out.append(Message("assistant", None, (ToolCall(f"call_{count}", name, arguments),)))
        out.append(Message("tool", result, tool_call_id=f"call_{count}", name=name, error=error))

    def say(user: str, agent: str | None = None) -> None:
        out.append(Message("user", user))
        if agent is not None:
            out.append(Message("assistant", agent))

    write = ("exchange_delivered_order_items", {
        "order_id": order, "item_ids": ["7117010"], "new_item_ids": ["7117014"] if good else ["7117012"],
        "payment_method_id": "credit_card_913",
    })  # fmt: skip
    say("hi, the lamp I got is too small, I'd like the taller one", "Gladly. May I have your e-mail address?")
    say("yara.silva@example.com")
    if not good and draw.random() < 0.3:
        call("transfer_to_human_agents", {"summary": "wants a taller lamp"}, "Transfer successful")
        out.append(Message("user", "oh, ok. ###TRANSFER###"))
        return out, StopReason.TRANSFER
    if draw.random() < 0.3:
        call("find_user_id_by_email", {"email": "yara.silva@example"}, "Error: User not found", error=True)
    call("find_user_id_by_email", {"email": "yara.silva@example.com"}, "yara_silva_6131")
    call("get_order_details", {"order_id": order}, LONG_ORDER)
    call("get_product_details", {"product_id": "71"}, '{"7117010": {"height": "40cm", "color": "black"}, "7117012": '
         '{"height": "60cm", "color": "white"}, "7117014": {"height": "60cm", "color": "black"}}')  # fmt: skip
    if good:
        out.append(Message("assistant", "There is a 60 cm lamp in black (7117014) and one in white (7117012). "
                           "Which would you like?"))  # fmt: skip
        say("white. hmm, no: black please", f"I will exchange lamp 7117010 of order {order} for the black 60 cm lamp "
            "7117014 and charge the difference of 12.30 to credit_card_913. Do you agree?")  # fmt: skip
        say("yes, go ahead")
        call(*write, '{"status": "exchange requested"}')
        out.append(
            Message("assistant", "Done. You will get an e-mail about how to send the old one back. Anything else?")
        )
        out.append(Message("user", "no, thank you! ###STOP###"))
        return out, StopReason.USER_STOP
    call(*write, '{"status": "exchange requested"}')
    out.append(Message("assistant", "I have exchanged your lamp."))
    if draw.random() < 0.25:
        for _ in range(4):
            say("but which colour did you take?", "I have exchanged your lamp.")
        return out, StopReason.MAX_TURNS
    say("wait, I wanted the black one", "I have exchanged your lamp.")
    out.append(Message("user", "###STOP###"))
    return out, StopReason.USER_STOP


def make_episodes(tasks: list[MadeUpTask], skill: float, attempts: int, seed: int) -> list[Episode]:
    draw = random.Random(seed)
    out = []
    for task in tasks:
        hardness = 0.5 - INTENTS.index(task.tags["intent"]) * 0.09 + (0.1 if task.tags["persona"] == "terse" else -0.05)
        chance = min(0.99, max(0.02, skill + (1 - skill) * hardness * 0.6))
        for attempt in range(attempts):
            good = draw.random() < chance
            messages, stop = make_talk(task, good, draw)
            trace = TokenTrace()
            for m in messages:
                ids = [draw.randrange(900) for _ in range(draw.randint(4, 14))]
                if m.role == "assistant" and m.content != GREETING:
                    trace.append_sampled(ids, [-0.1] * len(ids), 1)
                else:
                    trace.append_given(ids)
            episode = Episode(
                id=f"{task.id}/{attempt}", task_id=task.id, domain="retail", turns=[Turn(m) for m in messages],
                stop=stop, agent="tiny", user="agenda", tokens=trace, tags=dict(task.tags),
                timings={"agent": 0.2, "user": 0.01}, user_usage=Usage(0, 0, 0),
            )  # fmt: skip
            found = audit(episode, task, kind_of, RETAIL)  # type: ignore[arg-type]
            episode.verdict = Verdict(float(good and stop.chosen), {"DB": float(good)}, found)
            out.append(episode)
    return out


def log_curves(run: RunDirectory, draw: random.Random) -> None:
    for step in range(1, 41):
        run.log({"loss": 3.2 * 0.93**step + 0.25 + draw.gauss(0, 0.02), "lr": 3e-3}, phase="cold_start", step=step)
    for step in range(1, 61):
        x = step / 60
        success = 0.36 + 0.53 * (1 - 2.718 ** (-3.2 * x)) + draw.gauss(0, 0.025)
        right, wrong = max(0.0, success**3), max(0.0, (1 - success) ** 3)
        row = {
            "episodes": 256, "success": success, "reward": success, "groups/all_correct": right,
            "groups/all_wrong": wrong, "groups/mixed": 1 - right - wrong,
            "writes_without_consent": max(0.004, 0.58 * 2.718 ** (-5 * x) + draw.gauss(0, 0.012)),
            "needless_transfers": max(0.02, 0.36 * 2.718 ** (-3 * x) + draw.gauss(0, 0.015)),
            "turns": 8.1 + 3.1 * x + draw.gauss(0, 0.15), "agent_tokens": 52 + 11 * x + draw.gauss(0, 1.0),
            "kl_k3": 0.002 + 0.05 * x**1.4 + abs(draw.gauss(0, 0.002)),
            "entropy": 0.31 - 0.17 * x + draw.gauss(0, 0.006),
            "tool_error_rate": max(0.01, 0.09 - 0.07 * x + draw.gauss(0, 0.006)),
            "calls_general_share": max(0.01, 0.12 - 0.09 * x + draw.gauss(0, 0.005)),
            "grad_norm": 0.6 + draw.gauss(0, 0.1), "lr": 5e-4, "loss": draw.gauss(0, 0.02), "time/rollout": 4.1,
            "stop/user_stop": 0.9, "calls/get_order_details": 1.2 + x,
        }  # fmt: skip
        run.log(row, phase="rl", step=step)
        if step % 15 == 0:
            run.log({"success": success - 0.02, "episodes": 100}, phase="validation", step=step)


def make_run(root: Path, *, attempts: int = 4, count: int = 70) -> RunDirectory:
    """A finished made-up run under ``root``."""
    draw = random.Random(0)
    with RunDirectory(root, "quickstart") as run:
        run.write_config({
            "preset": "quickstart", "seed": 0, "model": {"d_model": 128, "layers": 3},
            "rl": {"steps": 60, "tasks": 32, "rollouts": 8, "lr": 5e-4, "kl": 0.001},
            "user": {"api_key": "sk-not-shown"},
        })  # fmt: skip
        log_curves(run, draw)
        tasks = make_tasks(count)
        before, after = make_episodes(tasks, 0.22, attempts, 1), make_episodes(tasks, 0.88, attempts, 2)
        run.write_tasks(tasks)  # type: ignore[arg-type]
        run.write_episodes("eval-before", before)
        run.write_episodes("eval-after", after)
        run.write_summary({
            "cold_start": evaluate_summary(before), "rl": evaluate_summary(after), "do_nothing": 0.041,
            "always_transfer": 0.093, "seconds": 552.4, "peak_memory_bytes": 2_231_000_000, "seed": 0,
            "user_train": "agenda, seed 11", "user_eval": "agenda, seed 77",
            "phases": {"cold_start": 71.2, "rl": 402.7, "evaluation": 74.1},
        })  # fmt: skip
    return run


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A finished made-up run, shared by the tests: they may write report.html and nothing else."""
    return make_run(tmp_path_factory.mktemp("runs"))
