"""The original's side of benches/env_load.py: runs in an interpreter that has tau2-bench installed, prints JSON.

Nothing of muarl is imported here. TAU2's LLM agent and user simulator, orchestrator and evaluation play the replies of
the scripts; what stands in for their model calls sleeps as long as the user takes, within the process. The judge says
"met" without a request.
"""

from __future__ import annotations

import json
import random
import resource
import statistics
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

warnings.simplefilter("ignore")
from loguru import logger  # noqa: E402

logger.remove()
import tau2.agent.llm_agent as agents  # noqa: E402
import tau2.evaluator.evaluator_nl_assertions as judge  # noqa: E402
import tau2.user.user_simulator as users  # noqa: E402
from tau2.data_model.message import AssistantMessage, ToolCall  # noqa: E402
from tau2.data_model.simulation import TextRunConfig  # noqa: E402
from tau2.registry import registry  # noqa: E402
from tau2.runner.build import build_text_orchestrator  # noqa: E402
from tau2.runner.simulation import run_simulation  # noqa: E402

MET = json.dumps({"results": [{"expectedOutcome": "", "reasoning": "", "metExpectation": True}]})


def message(row: dict[str, Any], requestor: str) -> AssistantMessage:
    """A recorded reply."""
    calls = [
        ToolCall(
            id=c["id"],
            name=c["function"]["name"],
            arguments=json.loads(c["function"]["arguments"]),
            requestor=requestor,
        )
        for c in row.get("tool_calls", ())
    ]
    return AssistantMessage(role="assistant", content=row.get("content"), tool_calls=calls or None, cost=0.0)


def spoken(messages: list[Any]) -> int:
    return sum(m.role == "assistant" for m in messages)


def main() -> None:
    file, domain, count, threads, *delay = sys.argv[1:]
    rows, low, high = json.loads(Path(file).read_text()), float(delay[0]), float(delay[1])

    def agent(model: str, messages: list[Any], **_: Any) -> AssistantMessage:
        greeted = spoken(messages) - 1  # the greeting is in its context
        return message(rows[int(model)]["agent"][greeted], "assistant")

    def user(model: str, messages: list[Any], **_: Any) -> AssistantMessage:
        number = spoken(messages)
        time.sleep(random.Random(f"{model}:{number}").uniform(low, high))
        return message(rows[int(model)]["user"][number], "user")

    agents.generate, users.generate = agent, user
    judge.generate = lambda **_: AssistantMessage(role="assistant", content=MET)
    tasks = {task.id: task for task in registry.get_tasks_loader(domain)("base")}
    rewards: list[float | None] = [None] * len(rows)
    seconds = []

    def play(number: int) -> None:
        script = number % len(rows)
        started = time.perf_counter()
        config = TextRunConfig(domain=domain, llm_agent=str(script), llm_user=str(script))
        orchestrator = build_text_orchestrator(config, tasks[rows[script]["task_id"]], seed=number)
        rewards[script] = run_simulation(orchestrator).reward_info.reward
        seconds.append(time.perf_counter() - started)

    before = resource.getrusage(resource.RUSAGE_SELF)
    started = time.perf_counter()
    with ThreadPoolExecutor(int(threads)) as pool:
        list(pool.map(play, range(int(count))))
    whole = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_SELF)
    figures = {
        "conversations": len(seconds),
        "seconds": whole,
        "conversations/s": len(seconds) / whole,
        "median s": statistics.median(seconds),
        "CPU s, server": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "MB peak": after.ru_maxrss / 1e3,
    }
    json.dump({"figures": figures, "rewards": rewards}, sys.stdout)


if __name__ == "__main__":
    main()
