"""tau2-bench's side of tests/checks/test_user_proxy_tau2.py: runs in an interpreter that has tau2-bench, prints JSON.

Nothing of muarl is imported here. Its own orchestrator plays one task with its own user simulator, whose model is asked
at ``user_url``.
"""

from __future__ import annotations

import json
import sys
import warnings

warnings.simplefilter("ignore")
from loguru import logger  # noqa: E402

logger.remove()
from tau2.evaluator.evaluator import EvaluationType  # noqa: E402
from tau2.registry import registry  # noqa: E402
from tau2.run import run_task  # noqa: E402


def main() -> None:
    given = json.loads(sys.argv[1])
    tasks = {task.id: task for task in registry.get_tasks_loader(given["domain"])()}
    run = run_task(
        given["domain"],
        tasks[given["task"]],
        "llm_agent",
        "user_simulator",
        llm_agent="openai/agent",
        llm_args_agent={"api_base": given["agent_url"], "api_key": "none"},
        llm_user="openai/customer",
        llm_args_user={"api_base": given["user_url"], "api_key": given["token"], "temperature": 0.0},
        max_steps=20,
        evaluation_type=EvaluationType.ENV,
        seed=300,
    )
    said = [{"role": m.role, "content": m.content} for m in run.messages]
    reward = None if run.reward_info is None else run.reward_info.reward
    told = {"messages": said, "end": str(run.termination_reason), "reward": reward}
    sys.stdout.write(f"RESULT {json.dumps(told)}\n")


if __name__ == "__main__":
    main()
