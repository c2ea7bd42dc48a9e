"""The run directory: everything that one run leaves behind, in one folder that can be read, moved and resumed.

runs/NAME/
  config.yaml      the resolved configuration
  versions.json    python, libraries, muarl, git commit, platform
  status.json      running, finished, interrupted or failed, and why; the command, the domain and the process
  resumes.jsonl    each time that the run was resumed: when, after which step, with what changed
  metrics.jsonl    one row per step: phase, step, seconds since the run began, and the figures
  tensorboard/     the same figures as TensorBoard events
  episodes/        eval-before.jsonl, eval-after.jsonl, train-NNNN.jsonl
  tasks.jsonl      the tasks behind those episodes (what the report needs of them)
  checkpoints/     weights in Hugging Face form
  findings.jsonl   what the audit found in evaluations
  audit-rules.yaml what the class of an own domain declares for audits
  spending.jsonl   what a training run paid at endpoints, by conversation
  summary.json     the result
  report.html      the page to open
"""

from __future__ import annotations

import json
import os
import re
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

import yaml

from muarl.basics.errors import BudgetError, CheckpointError, ConfigError, DataError, MuarlError, StoppedBySignError
from muarl.basics.files import (
    append_line,
    clear_disk_errors,
    drop_broken_tail,
    json_line,
    lock_folder,
    overwrite,
    plain,
    read_lines,
    write_json,
    write_text,
)
from muarl.basics.json_values import as_figure
from muarl.basics.stopping import stopped_by
from muarl.basics.system import versions
from muarl.basics.untrusted import YAML_BYTES, read_json_object, read_text
from muarl.observe.status import (
    FAILED,
    FINISHED,
    INTERRUPTED,
    RUNNING,
    now,
    resume_command,
    state_of,
    this_process,
)
from muarl.types.episode import Episode, read_episodes, write_episodes

if TYPE_CHECKING:
    from muarl.domains.tasks import Task

JSON_BYTES = 16 << 20
"""Of summary.json and the like, at most."""
Existing = Literal["refuse", "suffix", "resume"]
_SECRET = re.compile(r"(api_?key|secret|password|passwd|authorization|bearer|(access|auth|hf)_token)$", re.IGNORECASE)


def without_secrets(value: Any) -> Any:
    """The configuration as it may be written down: keys that name a secret are masked, the home folder becomes ~."""
    if isinstance(value, Mapping):
        return {
            str(k): "***" if _SECRET.search(str(k)) and isinstance(v, str) and v else without_secrets(v)
            for k, v in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [without_secrets(v) for v in value]
    if isinstance(value, (str, Path)):
        text, home = str(value), str(Path.home())
        return f"~{text[len(home) :]}" if text == home or text.startswith(home.rstrip("/") + "/") else text
    return plain(value)


class RunDirectory:
    """One run's folder, ``root/name``.

    ``existing`` says what happens where that folder already holds a run: "refuse" (the default) raises MuarlError with
    the remedies, "suffix" takes NAME-2, NAME-3, ..., "resume" continues in it. ``command``: the subcommand of muarl
    whose run this is, by which it can be resumed. Use it as a context manager: the status is then kept true whatever
    happens inside.

        with RunDirectory("runs", "quickstart", existing="suffix") as run:
            run.write_config(config)
            run.log({"reward": 0.5}, phase="rl", step=1)
    """

    def __init__(
        self, root: str | Path, name: str, *, existing: Existing = "refuse", command: str | None = None
    ) -> None:
        if not name or name in (".", "..") or re.search(r"[/\\\x00]", name):
            raise MuarlError(f"{name!r} is no name for a run: use letters, digits, dots and dashes.")
        path = Path(root) / name
        if existing == "suffix":
            number = 2
            while _occupied(path):
                path = Path(root) / f"{name}-{number}"
                number += 1
        elif existing == "refuse" and _occupied(path):
            raise MuarlError(
                f"The run {path} already exists, and runs are never overwritten. "
                "Choose another name, remove that folder, or resume it."
            )
        self.path = path
        self.name = path.name
        self.command = command
        self.domain: str | None = None
        self._place: str | None = None
        self._written: Mapping[str, Any] | None = None
        self.signs: Sequence[Mapping[str, Any]] = ()
        self._began = time.monotonic()
        self._since = now()
        self.rewound = 0
        self._lock: int | None = None
        with clear_disk_errors(path):
            for folder in (self.path, self.episodes, self.checkpoints, self.tensorboard):
                folder.mkdir(parents=True, exist_ok=True)
        if existing == "resume":
            drop_broken_tail(self.metrics)
            before = self.read_json("status")
            # The clock goes on where it was last noted: at the end of the process before, or by its last row.
            noted = (as_figure(row.get("seconds")) for row in (before, *self.read_metrics()))
            self._began -= max((seconds for seconds in noted if seconds is not None), default=0.0)
            self._since = str(before.get("began") or before.get("at") or self._since)
            self.command = command or before.get("command")
        if not (self.path / "versions.json").exists() or existing == "resume":
            write_json(self.path / "versions.json", versions())

    @classmethod
    def at(cls, path: str | Path) -> RunDirectory:
        """An existing run, to be read. MuarlError if there is none."""
        run = cls.__new__(cls)
        run.path = Path(path)
        run.name = run.path.resolve().name
        run._began, run._since = time.monotonic(), now()
        run.rewound, run._lock, run.signs = 0, None, ()
        run.command = run.domain = run._place = run._written = None
        files = (run.metrics, run.summary, run.path / "status.json", *run.episodes.glob("*.jsonl"))
        if not any(file.is_file() for file in files):
            raise MuarlError(f"There is no run at {run.path}: neither metrics, nor episodes, nor a summary.")
        return run

    # Where things are.

    @property
    def metrics(self) -> Path:
        """metrics.jsonl."""
        return self.path / "metrics.jsonl"

    @property
    def tensorboard(self) -> Path:
        """The folder of TensorBoard events."""
        return self.path / "tensorboard"

    @property
    def episodes(self) -> Path:
        """The folder of episode files."""
        return self.path / "episodes"

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints: step-N of the cold start, rl/step-N, base."""
        return self.path / "checkpoints"

    @property
    def summary(self) -> Path:
        """summary.json."""
        return self.path / "summary.json"

    @property
    def report(self) -> Path:
        """report.html."""
        return self.path / "report.html"

    @property
    def seconds(self) -> float:
        """Seconds that the run has taken, without those between its processes: a resumed run counts on."""
        return time.monotonic() - self._began

    @property
    def resume_command(self) -> str | None:
        """The command that takes this run up again; None if no command of muarl's made it. It names the code of a
        person's own environments, which a run's folder may not."""
        again = resume_command(self.command, self.path)
        return None if again is None else " ".join([again, *_code_options(self._written or {})])

    @property
    def state(self) -> str:
        """running, finished, interrupted, failed, or killed: its process is gone without a word."""
        return state_of(self.read_json("status"))

    # One at a time.

    def hold(self) -> None:
        """Hold the folder until the run ends, however it ends. MuarlError if another process does.

        Where the file system knows no such locks nothing is held.
        """
        if self._lock is None:
            self._lock = lock_folder(self.path)

    def let_go(self) -> None:
        """Let others continue in the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    # Writing.

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Write the resolved configuration; secrets are masked. Its domain is the true one (see ``takes_place_in``)."""
        self._written = config
        if self.domain is not None and isinstance(config.get("domain"), Mapping):
            config = {**config, "domain": {**config["domain"], "name": self.domain}}
        text = yaml.safe_dump(without_secrets(config), sort_keys=False, allow_unicode=True)
        write_text(self.path / "config.yaml", text)

    def takes_place_in(self, domain: str, *, configured: bool = False) -> None:
        """Let status.json name the domain whose episodes this run has. ``configured``: its configuration names it, too,
        if elsewhere than in ``domain.name``; if not, as where a program brings a domain of its own, that is put right.
        """
        self._place = domain
        if not configured and domain != self.domain:
            self.domain = domain
            if self._written is not None:
                self.write_config(self._written)
        self.write_status(RUNNING)

    def log(self, values: Mapping[str, Any], *, phase: str, step: int) -> dict[str, Any]:
        """Append one row of figures to metrics.jsonl, whole and flushed; returns the row."""
        row = {"phase": phase, "step": step, "seconds": round(self.seconds, 3), **values}
        append_line(self.metrics, row)
        return row

    def rewind(self, steps: Mapping[str, int] | None = None, episodes: Callable[[str], bool] | None = None) -> None:
        """Go back to an earlier moment of the run, which writes anew what came later. ``steps``: of each phase named,
        rows from this step on go. ``episodes``: whether an episodes file (by its name without .jsonl) goes.

        Of rows that were written twice the later one stays. ``rewound`` counts how often the figures changed so.
        """
        steps = steps or {}
        before = read_lines(self.metrics)
        rows = [r for r in self.read_metrics() if r.get("phase") not in steps or r.get("step", 0) < steps[r["phase"]]]
        if len(rows) < len(before):
            write_text(self.metrics, "".join(json_line(row) for row in rows))
            self.rewound += 1
        for path in self.episodes.glob("*.jsonl"):
            if episodes is not None and episodes(path.stem):
                path.unlink()
        for litter in (*self.path.glob(".*.tmp"), *self.episodes.glob(".*.tmp")):
            litter.unlink()

    def show_signs(self, signs: Sequence[Mapping[str, Any]]) -> None:
        """Let status.json name the signs that something goes wrong in training, those that stand now."""
        changed = [s.get("name") for s in signs] != [s.get("name") for s in self.signs]
        self.signs = signs
        if changed:
            self.write_status(RUNNING)

    def write_episodes(self, name: str, episodes: Iterable[Episode]) -> Path:
        """Write episodes/NAME.jsonl whole or not at all. Names: "eval-before", "eval-after", "train-0010"."""
        path = self.episodes / f"{name}.jsonl"
        write_episodes(path, episodes)
        return path

    def write_tasks(self, tasks: Iterable[Task]) -> None:
        """Remember what the report shows of tasks: id, scenario, tags, gold actions."""
        rows = [
            {
                "id": t.id,
                "domain": t.domain,
                "scenario": t.scenario,
                "tags": dict(t.tags),
                "actions": None
                if t.actions is None
                else [{"name": a.name, "arguments": dict(a.arguments), "requestor": a.requestor} for a in t.actions],
            }
            for t in tasks
        ]
        lines = [json.dumps(plain(row), ensure_ascii=False) + "\n" for row in rows]
        write_text(self.path / "tasks.jsonl", "".join(lines))

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Write summary.json whole or not at all."""
        write_json(self.summary, summary)

    def write_status(self, state: str, message: str | None = None) -> None:
        """Write status.json. On a full disk it is written over the old one's bytes, so that the state is still told."""
        data: dict[str, Any] = {
            "state": state,
            "message": message,
            "seconds": round(self.seconds, 1),
            "command": self.command,
        }
        data |= {"domain": self._place or _domain(self._written), "began": self._since, "at": now(), **this_process()}
        data |= {"signs": list(self.signs)} if self.signs else {}
        path = self.path / "status.json"
        try:
            write_json(path, data)
        except MuarlError:
            try:
                overwrite(path, (json.dumps(data) + "\n").encode())
            except OSError:  # nothing more can be done; the error that led here is the one to show
                pass

    def __enter__(self) -> Self:
        self.hold()
        self.write_status("running")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if problem is None:
            self.write_status(FINISHED)
        elif isinstance(problem, (BudgetError, StoppedBySignError)):
            self.write_status(INTERRUPTED, str(problem))
        elif isinstance(problem, KeyboardInterrupt) or type(problem).__name__ == "CancelledError":
            text = f"Interrupted ({stopped_by()}). Saved state is consistent"
            self.write_status(INTERRUPTED, f"{text}; use --resume." if self.resume_command else f"{text}.")
        else:
            text = str(problem) if isinstance(problem, MuarlError) else f"{type(problem).__name__}: {problem}"
            self.write_status(FAILED, text)
        if problem is not None:
            problem.add_note(f"Run folder: {self.path}")  # the command line prints an error's notes
            refused = isinstance(problem, (ConfigError, DataError, CheckpointError))
            if self.resume_command is not None and not refused:
                problem.add_note(f"Resume: {self.resume_command}")
        self.let_go()

    # Reading.

    def read_metrics(self) -> list[dict[str, Any]]:
        """The rows in order; where a resumed run wrote a step of a phase twice, the later row holds."""
        by_step: dict[tuple[str, str], dict[str, Any]] = {}
        for row in read_lines(self.metrics):
            by_step.pop(key := (str(row.get("phase", "")), repr(row.get("step"))), None)
            by_step[key] = row
        return list(by_step.values())

    def read_episodes(self, name: str) -> list[Episode]:
        """Episodes of episodes/NAME.jsonl; an empty list if there is no such file. MuarlError if it is malformed.

        An unfinished last line is left out, and of an episode that was played again the last row holds.
        """
        path = self.episodes / f"{name}.jsonl"
        try:
            episodes = read_episodes(path, unfinished_ok=True) if path.is_file() else ()
            return list({(e.id, e.group, e.seed): e for e in episodes}.values())
        except ValueError as problem:
            raise MuarlError(f"{problem}. Fix or remove the file.") from None

    def read_tasks(self) -> dict[str, dict[str, Any]]:
        """Task id to what ``write_tasks`` wrote."""
        return {str(row.get("id")): row for row in read_lines(self.path / "tasks.jsonl")}

    def read_json(self, name: str) -> dict[str, Any]:
        """A JSON object of the run ("summary", "versions", "status"); empty if there is none."""
        path = self.path / f"{name}.json"
        if not path.is_file():
            return {}
        return read_json_object(path, most=JSON_BYTES)

    def read_config(self) -> str:
        """The text of config.yaml, empty if there is none. DataError if it cannot be one."""
        path = self.path / "config.yaml"
        return read_text(path, YAML_BYTES) if path.is_file() else ""


def _code_options(config: Mapping[str, Any]) -> list[str]:
    """The options that name what a configuration has of references to code (registry.is_reference)."""
    section = config.get("domain")
    parts = section if isinstance(section, (list, tuple)) else [section]
    coldstart = config.get("coldstart")
    scenarios = coldstart.get("scenarios") or () if isinstance(coldstart, Mapping) else ()
    named = [*(part.get("name") for part in parts if isinstance(part, Mapping)), *scenarios]
    return [f"--domain {shlex.quote(name)}" for name in named if isinstance(name, str) and ":" in name]


def _domain(config: Mapping[str, Any] | None) -> str | None:
    """The domain's name in a configuration; None where it has none."""
    section = config.get("domain") if config is not None else None
    if isinstance(section, list):
        return ", ".join(str(one.get("name")) for one in section if isinstance(one, Mapping))
    return section.get("name") if isinstance(section, Mapping) else None


def _occupied(path: Path) -> bool:
    """True if a run lives here: any of its files, or an episode. Empty folders are free."""
    if not path.exists():
        return False
    if not path.is_dir():
        return True
    return any(p.is_file() for p in path.rglob("*"))
