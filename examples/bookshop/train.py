"""Train an agent for the bookshop by reinforcement learning, with a language model as the customer.

    python examples/bookshop/train.py model.checkpoint=PATH user.endpoint.model=MODEL eval_user.endpoint.model=MODEL

Settings are train.yaml's; KEY=VALUE arguments are laid over them, as with ``muarl train``. What differs from that
command is the ``Setting``: another domain, other tasks.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch is imported: idle threads sleep

from shop import Bookshop, draw

from muarl.agents.idle import IdleAgent
from muarl.benchmarks.statistics import EvaluationReport, evaluate_summary
from muarl.config import load_config
from muarl.conversation import Limits, Rules
from muarl.errors import MuarlError
from muarl.observe.progress import Progress
from muarl.observe.report import collect, write_report
from muarl.recipes import rl
from muarl.recipes.auditing import audit_episodes, write_audits
from muarl.recipes.common import load_model, open_logger, open_run, prepare
from muarl.recipes.engines import make_agent
from muarl.recipes.evaluate import evaluate
from muarl.recipes.preflight import check_gold, check_roles, check_room
from muarl.recipes.setting import Setting


def main(overrides: Sequence[str]) -> None:
    config = load_config(Path(__file__).with_name("train.yaml"), overrides)
    prepare(config)
    limits = Limits(turns=config.rl.max_turns, tool_errors=config.rl.max_tool_errors)
    setting = Setting(Bookshop(), draw, Rules(), limits, judge="pass")
    check_gold(config, setting)  # do the gold actions of the tasks work?
    check_roles(config, "user", "eval_user")  # do the endpoints answer?
    policy = load_model(config.model)
    check_room(config, setting, policy)
    tasks = draw("test", config.eval.tasks, config.eval.seed, 0)
    setting.check(tasks)
    with open_run(config) as run, Progress() as progress, open_logger(config, run) as logger:
        run.write_tasks(tasks)
        floor = {"do_nothing": evaluate(config, setting, IdleAgent(), tasks, progress, trials=1, label="do nothing")}
        audits = {}
        for when, name in (("before", "cold_start"), ("after", "rl")):
            if when == "after":
                rl.train(config, setting, policy, run, logger, progress)
            agent = make_agent(policy, config, temperature=config.eval.temperature, top_p=config.eval.top_p)
            episodes = evaluate(config, setting, agent, tasks, progress, label=f"evaluation {when}")
            run.write_episodes(f"eval-{when}", episodes)
            audits[name] = audit_episodes(setting, tasks, episodes, name=f"audit {when}", file=f"eval-{when}")
            progress.console.print(EvaluationReport.of(episodes, name=when, baselines=floor).to_table())
        write_audits(run, list(audits.values()))  # by the rules that Bookshop declares
        nothing = evaluate_summary(floor["do_nothing"])["success"]
        run.write_summary({"do_nothing": nothing, "audit": {n: a.summary.to_json() for n, a in audits.items()}})
        print(f"Run folder: {run.path}")
    write_report(run.report, collect(run))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except MuarlError as problem:  # something that a person can mend: its text says what
        sys.exit(f"Error: {problem}")
