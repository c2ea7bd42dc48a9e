"""``muarl env serve`` under load: many conversations at once with slow users, and not one lost or mixed up.

Starts the server, a stub of two models (the agent's, and the users' that take --delay seconds for each message), and
asks for --conversations conversations by POST /run, --concurrency of them at a time. The stub says in each task what an
expert and a rule-based user said there before (of a benchmark: the gold actions, and fixed lines), so that every result
is known: reward, parts, why it ended, and every message that the agent hears. All processes are on one machine; CPU
seconds are told for each.

    python benches/env_load.py                                        # 1,000 at once, 4,000 in all
    python benches/env_load.py --concurrency 50 --conversations 100   # small
    python benches/env_load.py --environment tau2-retail --original tau2-bench/.venv/bin/python

With --original, TAU2's own orchestrator plays the same replies beside it, in as many threads (env_load_original.py): a
stub stands in for its model calls within the process, so it pays for no HTTP. Exit code 1 if anything was lost or mixed
up, or if rewards differ.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from muarl.agents.expert import ExpertAgent
from muarl.domains.tasks import Task
from muarl.environments.environment import Environment
from muarl.environments.registry import find
from muarl.rewards.judge import FixedJudge
from muarl.types.chat import Message, ToolCall, to_openai
from muarl.types.episode import Episode
from muarl.users.scripted import ScriptedUserFactory

MAIN = "from muarl.cli.main import main; main()"


@dataclass(frozen=True)
class Script:
    """What is said about one task, and what must come of it. ``agent``, ``user``: messages in OpenAI's form."""

    task: str
    task_id: str
    scenario: str
    agent: list[dict[str, Any]]
    user: list[dict[str, Any]]
    heard: list[str | None]
    reward: float
    parts: dict[str, float]
    stop: str


def scripts(environment: Environment, count: int) -> list[Script]:
    """The scripts of the first tasks, played once without waiting."""
    split = "base" if environment.is_benchmark else "test"
    tasks = environment.make_tasks(split, count)
    place = environment.place(judge=FixedJudge(True))
    if environment.is_benchmark:
        users: Any = ScriptedUserFactory({task.id: _lines(task) for task in tasks})
        agent: Any = _Gold({task.id: task for task in tasks})
    else:
        users, agent = place.users(), ExpertAgent(make=environment.needed_expert())
    runner = place.runner(agent, users)

    async def played() -> list[Episode]:
        return [await runner.play(place.requests([task], 1, 0, "")[0]) for task in tasks]

    return [_script(task, episode) for task, episode in zip(tasks, asyncio.run(played()), strict=True)]


def _script(task: Task, episode: Episode) -> Script:
    assert episode.verdict is not None, episode.error
    said = [m for m in episode.messages if m.role == "assistant"][1:]  # the greeting is nobody's
    answers = [{**to_openai(m), "role": "assistant"} for m in episode.messages if m.role == "user"]
    heard = [m.content for m in episode.messages if m.role in ("user", "tool") and not m.tool_calls and _shown(m)]
    return Script(
        str(task.origin.address), task.id, task.scenario, [to_openai(m) for m in said], answers, heard,
        episode.verdict.reward, dict(episode.verdict.breakdown), episode.stop.value,
    )  # fmt: skip


def _shown(message: Message) -> bool:
    return message.role == "user" or message.requestor == "assistant"


def _lines(task: Task) -> list[str | Message]:
    """What a user says who does its part of a task with its own tools."""
    done = [Message("user", None, tool_calls=(call,)) for call in _calls(task) if call.requestor == "user"]
    return ["Hello, I need help.", *done, "Yes, please do that."]


def _calls(task: Task) -> list[ToolCall]:
    return [ToolCall(f"c{n}", a.name, a.arguments, a.requestor) for n, a in enumerate(task.actions or ())]


class _Gold:
    """An agent that does what is right in each task, and then says so."""

    name = "gold"

    def __init__(self, tasks: dict[str, Task]) -> None:
        self.tasks = tasks

    def open(self, system: str, tools: Any, *, seed: int, session: str) -> Any:
        from muarl.agents.base import AgentTurn

        task = self.tasks[session.strip("/").partition("#")[0]]
        own = [call for call in _calls(task) if call.requestor != "user"]
        left = [Message("assistant", None, tool_calls=(call,)) for call in own]

        class Session:
            tokens = None

            async def act(self, new: Sequence[Message]) -> AgentTurn:
                return AgentTurn(left.pop(0) if left else Message("assistant", "That is done."))

            def close(self) -> None: ...

        return Session()


# ── the stub of both models, in a process of its own ─────────────────────────────────────────────────────────────────


def wait_of(script: int, number: int, delay: Sequence[float]) -> float:
    """How long a user takes for its message: the same on both sides of a comparison."""
    return random.Random(f"{script}:{number}").uniform(*delay)


def stub(file: Path, port: int, delay: Sequence[float]) -> None:
    """Answer for both models until the process is ended."""
    rows = json.loads(file.read_text())
    by_scenario = {row["scenario"].strip(): n for n, row in enumerate(rows)}

    def answer(message: dict[str, Any]) -> JSONResponse:
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return JSONResponse({"choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage})

    async def agent(request: Request) -> JSONResponse:
        body = await request.json()
        replies = rows[int(body["model"])]["agent"]
        roles = [m["role"] for m in body["messages"]]
        return answer(replies[roles[roles.index("user") :].count("assistant")])  # a greeting before was never said

    async def user(request: Request) -> JSONResponse:
        body = await request.json()
        system = body["messages"][0]["content"]
        scenario = system.rpartition("<scenario>\n")[2].rpartition("\n</scenario>")[0].strip()
        if scenario not in by_scenario:  # the server's first question, whether anybody is there
            return answer({"role": "assistant", "content": "ready"})
        number, spoken = by_scenario[scenario], sum(m["role"] == "assistant" for m in body["messages"])
        await asyncio.sleep(wait_of(number, spoken, delay))
        return answer(rows[number]["user"][spoken])

    routes = [
        Route("/agent/v1/chat/completions", agent, methods=["POST"]),
        Route("/user/v1/chat/completions", user, methods=["POST"]),
        Route("/health", lambda request: JSONResponse({"ok": True})),
    ]
    uvicorn.run(Starlette(routes=routes), port=port, log_level="error", backlog=4096)


# ── the server and its client ────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def process(*command: str, **env: str) -> Iterator[psutil.Process]:
    """A process of this Python, ended with the block."""
    running = subprocess.Popen([sys.executable, *command], env={**os.environ, **env}, stdout=subprocess.DEVNULL)
    try:
        yield psutil.Process(running.pid)
    finally:
        running.terminate()
        running.wait(30)


def reachable(url: str) -> None:
    """Wait until a server answers."""
    for _ in range(1200):
        try:
            httpx.get(f"{url}/health", timeout=5).raise_for_status()
            return
        except httpx.HTTPError:
            time.sleep(0.1)
    raise SystemExit(f"{url} does not answer")


async def load(url: str, token: str, stub_url: str, rows: Sequence[Script], options: argparse.Namespace) -> list[Any]:
    """All results: (number of the script, result or failure, seconds)."""
    headers = {"authorization": f"Bearer {token}"}
    numbers, found = iter(range(options.conversations)), []

    async def work(client: httpx.AsyncClient) -> None:
        for number in numbers:
            script = number % len(rows)
            body = {"task": rows[script].task, "base_url": f"{stub_url}/agent/v1", "model": str(script), "seed": number}
            started = time.perf_counter()
            try:
                answer = await client.post("/run", json=body)
                result = answer.json() if answer.status_code == 200 else {"error": answer.text}
            except httpx.HTTPError as problem:
                result = {"error": repr(problem)}
            found.append((script, result, time.perf_counter() - started))

    async with AsyncExitStack() as stack:
        # Several clients: one with a thousand connections looks at all of them for every request.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        clients = [
            await stack.enter_async_context(
                httpx.AsyncClient(base_url=url, headers=headers, timeout=600, limits=limits)
            )
            for _ in range(-(-options.concurrency // 64))
        ]
        await asyncio.gather(*(work(clients[n % len(clients)]) for n in range(options.concurrency)))
    return found


def wrong(script: Script, result: dict[str, Any]) -> str | None:
    """What is wrong with a result; None if it is the one that must come."""
    if "error" in result or result["failure"] is not None:
        return str(result.get("error") or result["failure"])
    said = {"task": script.task, "reward": script.reward, "parts": script.parts, "stop": script.stop}
    heard = [m["content"] for m in result["messages"] if m["role"] in ("user", "tool")]
    differs = [name for name, value in said.items() if result[name] != value]
    return f"{script.task}: other {', '.join(differs)}" if differs else None if heard == script.heard else "other words"


def served(
    rows: Sequence[Script], file: Path, options: argparse.Namespace
) -> tuple[dict[str, Any], list[float | None]]:
    """The figures of our side, and the reward of each script."""
    token, port, stub_port = secrets.token_urlsafe(16), free_port(), free_port()
    stub_url = f"http://127.0.0.1:{stub_port}"
    user = json.dumps(
        {"model": "u", "base_url": f"{stub_url}/user/v1", "api_key_env": "", "concurrency": options.concurrency}
    )
    command = ["-c", MAIN, "env", "serve", options.environment, "--port", str(port), "--user", f"endpoint:{user}",
               "--judge", "pass", "--concurrency", str(options.concurrency)]  # fmt: skip
    delays = [str(d) for d in options.delay]
    with process(__file__, "--stub", str(file), str(stub_port), "--delay", *delays) as models:
        reachable(stub_url)
        with process(*command, MUARL_ENV_TOKEN=token) as server:
            reachable(f"http://127.0.0.1:{port}")
            idle, before, own = server.memory_info().rss, cpu(server), cpu(psutil.Process())
            started, stub_before = time.perf_counter(), cpu(models)
            peak = _Peak(server)
            found = asyncio.run(peak.during(load(f"http://127.0.0.1:{port}", token, stub_url, rows, options)))
            seconds = time.perf_counter() - started
            problems = [p for script, result, _ in found if (p := wrong(rows[script], result)) is not None]
            figures = {
                "conversations": len(found), "lost or mixed up": options.conversations - len(found) + len(problems),
                "seconds": seconds, "conversations/s": len(found) / seconds,
                "median s": statistics.median(s for _, _, s in found), "CPU s, server": cpu(server) - before,
                "CPU s, stub": cpu(models) - stub_before, "CPU s, client": cpu(psutil.Process()) - own,
                "MB idle": idle / 1e6, "MB peak": peak.rss / 1e6,
            }  # fmt: skip
    for problem in problems[:5]:
        print("wrong:", problem[:300])
    rewards: list[float | None] = [None] * len(rows)
    for script, result, _ in found:
        rewards[script] = result.get("reward")
    return figures, rewards


class _Peak:
    """The most memory that a process has had while something ran."""

    def __init__(self, of: psutil.Process) -> None:
        self._of, self.rss = of, 0

    async def during(self, work: Any) -> Any:
        async def look() -> None:
            while True:
                self.rss = max(self.rss, self._of.memory_info().rss)
                await asyncio.sleep(0.25)

        looking = asyncio.ensure_future(look())
        try:
            return await work
        finally:
            looking.cancel()


def cpu(of: psutil.Process) -> float:
    """CPU seconds of a process so far."""
    times = of.cpu_times()
    return times.user + times.system


def free_port() -> int:
    from muarl.basics.web.addresses import listen

    with listen("127.0.0.1", 0) as found:
        return int(found.getsockname()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environment", default="retail-generated")
    parser.add_argument("--conversations", type=int, default=4000)
    parser.add_argument("--concurrency", type=int, default=1000)
    parser.add_argument("--tasks", type=int, default=100, help="different tasks")
    parser.add_argument("--delay", type=float, nargs=2, default=(0.5, 3.0), help="seconds a user takes for a message")
    parser.add_argument("--original", help="a Python that has tau2-bench installed (TAU2_DATA_DIR names its data)")
    parser.add_argument("--original-conversations", type=int, help="of them; as many as ours if left out")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--stub", nargs=2, metavar=("FILE", "PORT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stub:
        stub(Path(options.stub[0]), int(options.stub[1]), options.delay)
        return
    rows = scripts(find(options.environment), options.tasks)
    waits = [sum(wait_of(n, k, options.delay) for k in range(len(row.user))) for n, row in enumerate(rows)]
    print(f"{len(rows)} tasks; a conversation waits {statistics.mean(waits):.1f} s for its user on average")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scripts.json"
        file.write_text(json.dumps([asdict(row) for row in rows]))
        figures, rewards = served(rows, file, options)
        both = {"muarl env serve": figures}
        if options.original:
            count = options.original_conversations or options.conversations
            command = [options.original, str(Path(__file__).with_name("env_load_original.py")), str(file),
                       options.environment.removeprefix("tau2-"), str(count), str(options.concurrency),
                       *map(str, options.delay)]  # fmt: skip
            out = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            both["tau2, threads"] = out["figures"]
            if any(r not in (None, own) for r, own in zip(out["rewards"], rewards, strict=True)):
                figures["lost or mixed up"] += 1
                print("wrong: the two sides give different rewards")
    for name in figures:
        values = "  ".join(f"{side[name]:>12,.1f}" if name in side else f"{'':>12}" for side in both.values())
        print(f"{name:<18}{values}")
    if options.json:
        options.json.write_text(json.dumps(both, indent=1))
    sys.exit(1 if figures["lost or mixed up"] else 0)


if __name__ == "__main__":
    main()
