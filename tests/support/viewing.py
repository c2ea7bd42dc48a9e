"""A run with all that a viewer can show, made by playing gold actions in real worlds; a server; and a browser."""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

import muarl
from muarl.domains.tasks import Task
from muarl.environments.audit_rules import RulesOfRuns
from muarl.environments.recorded_episodes import replay_recorded
from muarl.environments.registry import find
from muarl.observe.rundir import RunDirectory
from muarl.types.chat import GREETING, Message, ToolCall
from muarl.types.episode import Episode, StopReason, TokenTrace, Turn, Usage, Verdict
from muarl_tools.view.runs import Library
from muarl_tools.view.server import ViewServer
from support.waiting import PATIENCE

ASSETS = Path(muarl.__file__).parent / "assets" / "base"
STEPS, TASKS, ATTEMPTS = 12, 3, 4
TOKEN = "let-me-in"


@cache
def _tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(ASSETS / "tokenizer.json"))


def play(task: Task, good: bool, name: str, *, version: int = 0, advantage: float | None = None) -> Episode:
    """An episode that does the gold actions, or all but its last one, with tokens as a sampler leaves them."""
    tokenizer = _tokenizer()
    world = find("retail-generated").make_domain("tiny").world(task)
    turns = [Turn(Message("assistant", GREETING)), Turn(Message("user", "I want to change an order."))]
    trace = TokenTrace()
    trace.append_given(tokenizer.encode("<|im_start|>user\nI want to change an order.", add_special_tokens=False).ids)
    draw = random.Random(name)
    actions = list(task.actions or ())[: None if good else -1]
    for n, action in enumerate(actions):
        call = ToolCall(f"call_{n}", action.name, action.arguments)
        text = json.dumps({"name": action.name, "arguments": dict(action.arguments)})
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        span = trace.append_sampled(ids, [-(draw.random() ** 4) * 4 for _ in ids], version)
        turns.append(Turn(Message("assistant", "", (call,)), 0.2, span, version))
        result = world.call("assistant", call)
        turns.append(Turn(Message("tool", result.content, tool_call_id=call.id, name=action.name, error=result.error)))
        trace.append_given(tokenizer.encode(result.content, add_special_tokens=False).ids)
    turns += [Turn(Message("assistant", "Done. Anything else?")), Turn(Message("user", "No. ###STOP###"))]
    tags = {**task.tags} | ({"advantage": advantage} if advantage is not None else {})
    return Episode(
        id=f"{name}#{draw.randrange(1000)}", task_id=task.id, domain="retail", turns=turns, stop=StopReason.USER_STOP,
        seed=draw.randrange(1 << 60), group=name, agent="policy", user="agenda(seed=0)", tokens=trace,
        verdict=Verdict(float(good), {"DB": float(good)}, {"tool_errors": 0.0}), tags=tags,
        timings={"agent": 1.5, "user": 0.1, "world": 0.2, "total": 1.8}, user_usage=Usage(100, 20, 3, 0, 0.002),
    )  # fmt: skip


def writing_tasks(split: str, count: int) -> list[Task]:
    """Tasks whose last gold action changes the database, so that leaving it out is a failure."""
    source = find("retail-generated")
    kinds = dict.fromkeys(("modify_payment", "modify_address", "cancel", "exchange", "return", "modify_items"))
    return [t for t in source.make_tasks(split, count * 6) if t.tags["intent"] in kinds][:count]


def make_run(root: Path, name: str = "mine", *, state: str = "finished", skill: float = 0.0) -> RunDirectory:
    """A run of some steps over the same few tasks. The first task is learnt, the second forgotten, the third hard."""
    root.mkdir(parents=True, exist_ok=True)
    run = RunDirectory.at(Path(shutil.copytree(_played_run(name, skill).path, root / name)))
    if state != "finished":
        run.write_status(state)
    return run


_PLAYED = tempfile.TemporaryDirectory(prefix="muarl-viewed-")


@cache
def _played_run(name: str, skill: float) -> RunDirectory:
    """The run as it was played once; tests get copies."""
    root = Path(_PLAYED.name, str(skill))
    draw = random.Random(name)
    tasks, held_out = writing_tasks("train", TASKS), writing_tasks("test", 4)
    with RunDirectory(root, name) as run:
        run.write_config({
            "name": name, "model": {"checkpoint": "base"}, "domain": {"name": "retail-generated", "size": "tiny"},
            "rl": {"steps": STEPS, "advantage": "group_std"}, "user": {"api_key": "sk-not-shown"},
        })  # fmt: skip
        run.write_tasks([*tasks, *held_out])
        run.write_episodes("eval-before", [play(t, n == 0, f"evaluation/{t.id}") for n, t in enumerate(held_out)])
        for step in range(STEPS):
            x = step / STEPS
            chances = (x > 0.4, x < 0.4, False)
            episodes = []
            for task, sure in zip(tasks, chances, strict=True):
                for n in range(ATTEMPTS):
                    good = sure or draw.random() < 0.1 + skill
                    mark = 0.5 if good else -0.5
                    label = f"{step}.0/{task.id}"
                    episode = play(task, good, label, version=step, advantage=mark)
                    episode.id = f"{label}#{n}"
                    episodes.append(episode)
            if step == STEPS - 1:
                episodes[0].tags["user_errors"] = [{"rule": "invents", "turn": 1, "detail": "an order #W999"}]
                episodes[1].stop, episodes[1].verdict, episodes[1].error = StopReason.INFRASTRUCTURE, None, "timed out"
            run.write_episodes(f"train-{step:04d}", episodes)
            run.log({
                "episodes": 12.0, "excluded": 0.0, "reward": 0.4 + 0.4 * x, "success": 0.4 + 0.4 * x,
                "groups/all_correct": x / 2, "groups/all_wrong": 0.3, "groups/mixed": 0.7 - x / 2,
                "kl_k3": 0.02 * step, "kl": 0.02 * step, "entropy": 0.5 - 0.03 * step, "turns": 6 + x,
                "agent_tokens": 60 + x, "agent_tokens_per_turn": 8.0, "stop/user_stop": 0.9, "stop/max_turns": 0.1,
                "calls": 4 - x, "calls_general_share": 0.2 - x / 10, "calls/get_order_details": 2.0,
                "calls/calculate": 0.3 - x / 5, "tool_error_rate": 0.1, "time/rollout": 4.0, "time/update": 2.0,
                "time/agent": 1.5, "time/user": 0.1, "time/world": 0.2, "user/cost": 0.01,
                "update/logprob_gap_mean": 1e-6, "update/tokens_per_second": 900.0, "update/grad_norm": 0.4,
            }, phase="rl", step=step)  # fmt: skip
        run.write_episodes("eval-after", [play(t, n != 3, f"evaluation/{t.id}") for n, t in enumerate(held_out)])
        run.log({"success": 0.75, "reward": 0.75, "episodes": 4.0}, phase="evaluation", step=STEPS)
        run.write_summary({"cold_start": {"success": 0.25, "interval": [0.1, 0.6]}, "rl": {"success": 0.75}})
    return run


def indexed(folder: Path, *runs: Path) -> Library:
    """Runs with indexes of their own in ``folder``, complete."""
    library = Library(list(runs), index=folder, replay=replay_recorded, rules=RulesOfRuns())
    for each in library.runs:
        each.store.refresh()
    return library


@contextlib.contextmanager
def serving(library: Library, **options: Any) -> Iterator[ViewServer]:
    """A server for the time of a block."""
    with ViewServer(library, port=0, token=TOKEN, **options) as server:
        yield server.start()


CHROMIUM = next(
    (p for n in ("chromium", "chromium-browser", "google-chrome", "chrome") if (p := shutil.which(n))), None
)


class Browser:
    """Headless Chromium over its debugging pipe: pages, keys, and what it complains of (``complaints``)."""

    def __init__(self, folder: Path) -> None:
        assert CHROMIUM is not None
        ours, theirs = os.pipe(), os.pipe()
        # Chromium reads commands from 3 and answers on 4, so that is where the pipes must lie when it begins.
        script = (
            "import fcntl, os, sys; r, w = (fcntl.fcntl(int(n), fcntl.F_DUPFD, 10) for n in sys.argv[1:3]); "
            "os.dup2(r, 3); os.dup2(w, 4); os.execv(sys.argv[3], sys.argv[3:])"
        )
        flags = (
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync",
            "--disable-component-update", "--no-first-run", "--hide-scrollbars", "--remote-debugging-pipe",
            f"--user-data-dir={folder / 'profile'}",
        )  # fmt: skip
        command = [sys.executable, "-c", script, str(ours[0]), str(theirs[1]), CHROMIUM, *flags, "about:blank"]
        self._process = subprocess.Popen(
            command, pass_fds=(ours[0], theirs[1]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(ours[0])
        os.close(theirs[1])
        self._in, self._out = ours[1], theirs[0]
        self._buffer, self._number, self._session = b"", 0, ""
        self._events: list[dict[str, Any]] = []
        self.complaints: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command and its answer."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._in, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _read(self, deadline: float = PATIENCE) -> dict[str, Any]:
        end = time.monotonic() + deadline
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._out], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            found = os.read(self._out, 1 << 16)
            assert found, "the browser has gone"
            self._buffer += found
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message

    def _note(self, event: dict[str, Any]) -> None:
        self._events.append(event)
        name, params = event.get("method"), event.get("params", {})
        if name == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.complaints.append(params["entry"]["text"])
        elif name == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif name == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def _loaded(self) -> None:
        while not any(e.get("method") == "Page.loadEventFired" for e in self._events):
            self._note(self._read())

    def go(self, address: str) -> None:
        """Open an address and wait until it is there."""
        self._events.clear()
        self.call("Page.navigate", url=address)
        self._loaded()

    def ask(self, script: str) -> Any:
        """The value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str, *, leads: bool = False) -> None:
        """Press a key; ``leads``: and wait for the page that it leads to."""
        self._events.clear()
        text = "\r" if key == "Enter" else key
        self.call(
            "Input.dispatchKeyEvent",
            type="keyDown",
            key=key,
            text=text,
            windowsVirtualKeyCode=13 if key == "Enter" else 0,
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        if leads:
            self._loaded()

    def click(self, selector: str) -> None:
        """Click what a selector finds, and wait for the page that it leads to."""
        x, y = self.ask(
            f"(({{left, top, width, height}}) => [left + width / 2, top + height / 2])"
            f"(document.querySelector({json.dumps(selector)}).getBoundingClientRect())"
        )
        self._events.clear()
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self._loaded()

    def size(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """The window's size, and whether the reader likes it dark."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def close(self) -> None:
        """End the browser."""
        with contextlib.suppress(Exception):
            self._session = ""
            self.call("Browser.close")
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)
