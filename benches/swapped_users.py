"""RL against a user model and RL against rule-based users, each evaluated on both kinds: the table of docs/results.md.

    muarl sft-user --name um sft.steps=1500 sft.demonstrations=8000
    python benches/swapped_users.py --user runs/um --seeds 0,1,2
    python benches/swapped_users.py --user runs/um --seeds 0 rl.steps=1 eval.tasks=8      # a quick look

Settings at the end go to training and evaluation alike. Each of the six runs of a seed is a run of ``muarl train`` or
``muarl eval`` in a process of its own; run the same command again after an interruption: finished runs are kept, others
resumed. Writes swapped-users.json beside the runs and prints the table: success by seed, means, and by how many points
training against the user model differs from training against rule-based users, on either kind.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

from muarl.basics.files import write_json
from muarl_tools.experiments.stages import made

TRAINED = {"user model": "ablation-user", "agenda": "ablation-rl"}
"""Whom an agent is trained against, and the preset that does it."""
MEASURED = ("user model", "agenda")
CLOSE = 3.0
"""Points of success that the two may differ by."""


def scores(root: Path, user: Path, seed: int, settings: Sequence[str]) -> Iterator[tuple[str, str, float]]:
    """(trained against, evaluated on, success in percent) of one seed."""
    own = ("--seed", str(seed), f"runs_dir={root}", *settings)
    for against, preset in TRAINED.items():
        name = f"swap-{against.replace(' ', '-')}-seed{seed}"
        given = [f"user.checkpoint={user}"] if against == "user model" else []
        agent = made("train", "--config", preset, "--name", name, *given, *own)
        for on in MEASURED:
            who = ["eval_user.kind=sampled", f"eval_user.checkpoint={user}"] if on == "user model" else []
            called = f"{name}-on-{on.replace(' ', '-')}"
            words = ("--config", "quickstart-easy", "--checkpoint", str(agent.path), "--name", called)
            found = made("eval", *words, "eval.harder_users=[]", *who, *own)
            yield against, on, 100 * float(found.read_json("summary")["evaluation"]["success"])


def table(found: dict[str, dict[str, dict[int, float]]]) -> list[str]:
    """The table as Markdown, and a line for each kind of user that the agents were evaluated on."""
    seeds = list(next(iter(next(iter(found.values())).values())))
    lines = ["| trained against | evaluated on | " + " | ".join(f"seed {n}" for n in seeds) + " | mean |"]
    lines.append("|---" * (len(seeds) + 3) + "|")
    for against, rows in found.items():
        for on, row in rows.items():
            cells = " | ".join(f"{row[n]:.1f}" for n in seeds)
            lines.append(f"| {against} | {on} | {cells} | {fmean(row.values()):.1f} |")
    for on in MEASURED:
        gap = fmean(found["user model"][on].values()) - fmean(found["agenda"][on].values())
        close = "within" if abs(gap) <= CLOSE else "not within"
        lines.append(
            f"\nOn {on}: RL against the user model {gap:+.1f} points ({close} {CLOSE:g}) from RL against rules."
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--user", type=Path, required=True, help="the user model: a run of muarl sft-user")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--runs-dir", type=Path, default=Path("runs"))
    parser.add_argument("settings", nargs="*", help="KEY=VALUE")
    given = parser.parse_args()
    user = given.user.absolute()
    found: dict[str, dict[str, dict[int, float]]] = {a: {on: {} for on in MEASURED} for a in TRAINED}
    for seed in map(int, given.seeds.split(",")):
        for against, on, success in scores(given.runs_dir, user, seed, given.settings):
            found[against][on][seed] = success
            write_json(given.runs_dir / "swapped-users.json", found)
    print("\n".join(table(found)))


if __name__ == "__main__":
    main()
