"""Runs that are killed: lives of a recipe, each in a process of its own that ends by SIGKILL, its children with it.

    with Host() as host:
        life = host.begin("rl", ["rl.steps=4", ...], log)
        life.kill()

The host is one process that has imported everything and forks, so that a life begins in milliseconds.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pytest

PATIENCE = 300.0
"""Seconds that anything may take on a slow machine."""
NOT_COMPARED = ("seconds", "time/", "per_second", "peak_memory", "timings", "elapsed")


@dataclass
class Life:
    """One process of a run. ``pid`` leads its process group."""

    pid: int
    host: Host
    ended: int | None = None

    def kill(self) -> None:
        """SIGKILL to the process and all it has started; returns when it is gone."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.wait()

    def wait(self, seconds: float = PATIENCE) -> int:
        """Its exit status (negative: the signal that ended it), once it has ended."""
        if self.ended is None:
            self.ended = self.host.told(seconds)["ended"]
        return self.ended

    def over(self) -> bool:
        """Whether it has ended."""
        if self.ended is None and self.host.has_news(0.0):
            self.wait()
        return self.ended is not None


class Host:
    """The process that forks lives, one at a time."""

    def __init__(self, setup: str = "") -> None:
        code = f"from support.killing import serve; serve({setup!r})"
        paths = os.pathsep.join(p for p in (str(Path(__file__).parents[1]), *sys.path) if p)
        environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            bufsize=0,
            start_new_session=True,
        )
        self.told(PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(30)

    def begin(self, recipe: str, overrides: Sequence[str], log: Path, config: str = "quickstart") -> Life:
        """Start ``muarl.recipes.RECIPE`` with a configuration; what it prints goes to the file ``log``."""
        assert self._process.stdin is not None
        order = {"recipe": recipe, "config": config, "overrides": list(overrides), "log": str(log)}
        self._process.stdin.write(json.dumps(order).encode() + b"\n")
        return Life(self.told(PATIENCE)["pid"], self)

    def has_news(self, seconds: float) -> bool:
        return bool(select.select([self._process.stdout], [], [], seconds)[0])

    def told(self, seconds: float) -> dict[str, Any]:
        """What the host says next. AssertionError if it says nothing for so long."""
        assert self._process.stdout is not None
        assert self.has_news(seconds), f"nothing has ended within {seconds:g} seconds"
        line = self._process.stdout.readline()
        assert line, "the host of killed runs is gone"
        found: dict[str, Any] = json.loads(line)
        return found


def serve(setup: str) -> None:
    """The host's side."""
    import importlib

    import torch

    from muarl.config.load import load_config

    torch.set_num_threads(1)
    for name in ("muarl.recipes.coldstart", "muarl.recipes.quickstart", "tensorboard.summary.writer.record_writer"):
        importlib.import_module(name)
    if setup:
        module, name = setup.split(":")
        getattr(importlib.import_module(module), name)()
    out = os.fdopen(os.dup(1), "w", buffering=1)
    print(json.dumps({"ready": True}), file=out)
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            handle = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            os.dup2(handle, 1)
            os.dup2(handle, 2)
            status = 1
            try:
                config = load_config(order["config"], order["overrides"])
                importlib.import_module(f"muarl.recipes.{order['recipe']}").run(config)
                status = 0
            except BaseException as problem:
                import traceback

                traceback.print_exception(problem)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        with contextlib.suppress(PermissionError, ProcessLookupError):  # whoever of both comes first: it is done now
            os.setpgid(pid, pid)
        print(json.dumps({"pid": pid}), file=out)
        _, how = os.waitpid(pid, 0)
        print(json.dumps({"ended": os.waitstatus_to_exitcode(how)}), file=out)


def at_call(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, call: int, act: Callable[[], Any]
) -> Callable[[], None]:
    """``act()`` before this call of ``owner.name`` (a method, or a function of a module), counted from now on. Returns
    what takes that back."""
    original, made = getattr(owner, name), 0

    def run(*args: Any, **kwargs: Any) -> Any:
        nonlocal made
        made += 1
        if made == call:
            act()
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, run)
    return lambda: monkeypatch.setattr(owner, name, original)


def ctrl_c() -> None:
    """For ``at_call``."""
    raise KeyboardInterrupt


def sending(number: signal.Signals) -> Callable[[], None]:
    """For ``at_call``: a signal to this process."""
    return lambda: os.kill(os.getpid(), number)


def live_and_die(
    host: Host,
    recipe: str,
    options: Sequence[str],
    run: Path,
    *,
    deaths: int,
    progress: Callable[[Path], int],
    whole: int,
    seed: int,
    longest: float,
    config: str = "quickstart",
) -> list[int]:
    """Kill a run so often, then let it end. The moments are random: every third of them anywhere in the first seconds
    of a life, the others spread over the run, each up to ``longest`` seconds after some progress, but always before
    a life has come so near to the end that it could end by itself.

    ``progress``: how far a run's folder is, out of ``whole``. Returns how far it was at each death.
    """
    rng = random.Random(seed)
    log = run.parent / f"{run.name}.log"
    last = whole * (deaths + 1) // (deaths + 2)
    seen = []
    for death in range(deaths):
        before, moved = progress(run), False
        life = host.begin(recipe, _options(options, run), log, _config(run, config))
        due = 0 if death % 3 == 2 else round(whole * (death + 1) / (deaths + 2))
        until = time.monotonic() + PATIENCE
        while progress(run) < due and not life.over() and time.monotonic() < until:
            time.sleep(0.005)
        until = time.monotonic() + rng.uniform(0, longest)
        while time.monotonic() < until:
            now = progress(run)
            moved = moved or now != before  # at first its folder says how far the life before it was
            if moved and now >= last:
                break
            time.sleep(0.005)
        assert not life.over(), f"it ended before death {death + 1}, see {log}:\n{log.read_text()[-2000:]}"
        life.kill()
        assert life.ended == -signal.SIGKILL, f"{life.ended}, see {log}:\n{log.read_text()[-2000:]}"
        seen.append(progress(run))
    life = host.begin(recipe, _options(options, run), log, _config(run, config))
    assert life.wait() == 0, log.read_text()[-3000:]
    return seen


def _begun(run: Path) -> bool:
    return (run / "config.yaml").is_file()


def _config(run: Path, config: str) -> str:
    return str(run / "config.yaml") if _begun(run) else config


def _options(options: Sequence[str], run: Path) -> list[str]:
    """A run that was killed before it had a configuration is begun again, in the same place."""
    if _begun(run):
        return [f"resume={run}"]
    if run.exists():
        import shutil

        shutil.rmtree(run)
    return [*options, f"runs_dir={run.parent}", f"name={run.name}"]


def rows(run: Path) -> list[dict[str, Any]]:
    """The rows of figures as they stand in the file, without what a clock decides."""
    return [lasting(json.loads(line)) for line in (run / "metrics.jsonl").read_text().splitlines()]


def lasting(found: Any) -> Any:
    """JSON without what a clock decides."""
    if isinstance(found, Mapping):
        return {k: lasting(v) for k, v in found.items() if not any(word in k for word in NOT_COMPARED)}
    if isinstance(found, list):
        return [lasting(v) for v in found]
    return found


def episodes(run: Path) -> dict[str, list[Any]]:
    """Every file of episodes, without what a clock decides."""
    out = {}
    for path in sorted((run / "episodes").glob("*.jsonl")):
        found = [lasting(json.loads(line)) for line in path.read_text().splitlines()]
        for row in found:
            for turn in row.get("turns", ()):
                turn.pop("latency", None)
        out[path.name] = found
    return out


def dataset(run: Path) -> dict[str, Any]:
    """Every file of a dataset, without what a clock decides."""
    found: dict[str, Any] = {}
    for path in sorted((run / "dataset").rglob("*")):
        if path.suffix in (".jsonl", ".json"):
            texts = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
            found[path.name] = [lasting(json.loads(text)) for text in texts]
        elif path.is_file():
            found[path.name] = [line for line in path.read_text().splitlines() if "seconds" not in line]
    return found


def litter(run: Path) -> list[Path]:
    """What a crash left behind."""
    suffixes = (".tmp", ".partial", ".old", ".gone")
    return [p for p in run.rglob("*") if p.suffix in suffixes or p.name.startswith("damaged-")]
