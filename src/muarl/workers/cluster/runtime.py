"""Joining a cluster: it answers before a deadline, its machines have the same software and room for the run's parts.

Nothing of this machine is sent there by Ray itself: no working directory, no environment, no statistics.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from muarl.basics.errors import ConfigError, MuarlError
from muarl.basics.extras import require
from muarl.workers.cluster.calls import answer_now
from muarl.workers.cluster.machines import ProcessGroup, bundles, check_fits, check_same, named, probe
from muarl.workers.failures import ProcessLost

QUIET = {"log_to_driver": False, "logging_level": "ERROR"}
KNOCK = 10.0
"""Seconds that a port has to accept a connection."""


@dataclass(slots=True)
class Cluster:
    """A joined cluster, with places reserved for the processes of each part."""

    parts: Sequence[ProcessGroup]
    group: Any
    timeout: float
    ours: bool
    resources: Sequence[Mapping[str, float]] = ()
    """What each machine offers, as Ray counts it."""
    _actors: dict[str, list[Any]] = field(default_factory=dict)
    _waits: list[Callable[[], object]] = field(default_factory=list)
    _closed: bool = False

    def start(
        self, part: str, kind: type, *arguments: Any, concurrency: int | None = None, restarts: int = 0
    ) -> list[str]:
        """Start every process of a part, as actors of class ``kind``; those that it had before end. An ``Each`` among
        ``arguments`` is another one for each of them. Nobody waits here: see ``settle``.

        Returns their names, by which ``find`` gives them to every process, also to one that Ray starts again; handles
        among an actor's arguments would be lost then.
        """
        import ray
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        first = 0
        for own in self.parts:
            if own.name == part:
                break
            first += own.count
        else:
            raise ValueError(f"the run has no part {part!r}")
        self.end(part)
        remote = ray.remote(kind)
        names = []
        for number in range(own.count):
            options: dict[str, Any] = {
                "num_cpus": own.cpus,
                "num_gpus": own.gpus,
                "max_restarts": restarts,
                "max_task_retries": 0,
                "name": _name(kind),
                "scheduling_strategy": PlacementGroupSchedulingStrategy(self.group, first + number),
            }
            if own.memory:
                options["memory"] = own.memory
            if concurrency is not None:
                options["max_concurrency"] = concurrency
            resolved = [a.of(number) if isinstance(a, Each) else a for a in arguments]
            self._actors.setdefault(part, []).append(remote.options(**options).remote(*resolved))
            names.append(options["name"])
        return names

    def beside_driver(self, kind: type, *arguments: Any) -> str:
        """Start a small actor on the driver's own machine, which takes no place of the run's parts. Returns its name,
        as ``start`` does."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        name = _name(kind)
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        options = {"num_cpus": 0, "max_concurrency": 1000, "scheduling_strategy": here, "name": name}
        self._actors.setdefault("", []).append(ray.remote(kind).options(**options).remote(*arguments))
        return name

    def settle(self) -> None:
        """Wait until every process that was started is ready, and for what else has been asked of them by then (see
        ``later``); they make themselves ready side by side. MuarlError says what keeps one from it."""
        asked = {a.ready.remote(): part for part, actors in self._actors.items() if part for a in actors}
        try:
            for one, part in asked.items():
                answer_now(one, self.timeout, f"a {part}")
        except ProcessLost as problem:
            raise MuarlError(f"cluster: {problem}. It did not even start; Ray's logs say more") from None
        waits, self._waits = self._waits, []
        for wait in waits:
            wait()

    def later(self, wait: Callable[[], object]) -> None:
        """Something that ``settle`` shall wait for, too."""
        self._waits.append(wait)

    def end(self, part: str) -> None:
        """End the processes of a part. What they are doing is lost."""
        import ray

        for actor in self._actors.pop(part, ()):
            with suppress(Exception):  # it is gone already
                ray.kill(actor)

    def close(self) -> None:
        """End everything, and leave the cluster; one that was started for this run ends with it."""
        import ray

        if self._closed:
            return
        self._closed = True
        if not ray.is_initialized():
            return
        for part in list(self._actors):
            self.end(part)
        with suppress(Exception):
            from ray.util import remove_placement_group

            remove_placement_group(self.group)
        if self.ours:
            ray.shutdown()


def _name(kind: type) -> str:
    return f"muarl-{kind.__name__}-{uuid4().hex}"


def find(name: str) -> Any:
    """The actor of that name. ProcessLost if there is none."""
    import ray

    try:
        return ray.get_actor(name)
    except ValueError:
        raise ProcessLost(f"{name} is gone", final=True) from None


@dataclass(frozen=True, slots=True)
class Each:
    """An argument that differs from process to process."""

    of: Callable[[int], Any]


def join(
    address: str, parts: Sequence[ProcessGroup], *, timeout: float, spread: bool = False, cores: float | None = None
) -> Cluster:
    """Join the cluster at ``address`` (``local``, ``auto`` or HOST:PORT) and reserve places for ``parts``.

    ``cores``: CPUs of a local cluster. ConfigError if the cluster is not there, has other software or too little room;
    MuarlError if what it has is in use. Every wait ends after ``timeout`` seconds.
    """
    ours = _connect(address, timeout, cores)
    import ray

    try:
        nodes = [n for n in ray.nodes() if n["Alive"]]
        _check_software(nodes, timeout)
        check_fits(parts, [n["Resources"] for n in nodes])
        group = _reserve(parts, timeout, spread)
    except BaseException:
        if ours:
            ray.shutdown()
        raise
    return Cluster(parts, group, timeout, ours, [dict(n["Resources"]) for n in nodes])


def resources_of(address: str, timeout: float) -> list[dict[str, float]]:
    """What each machine of the cluster at ``address`` (``auto`` or HOST:PORT) offers, as Ray counts it. ConfigError if
    the cluster does not answer."""
    ours = _connect(address, timeout, None)
    import ray

    try:
        return [dict(node["Resources"]) for node in ray.nodes() if node["Alive"]]
    finally:
        if ours:
            ray.shutdown()


def _connect(address: str, timeout: float, cores: float | None) -> bool:
    """Connect this process. False if it was connected before (and its owner shall disconnect it)."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"  # else Ray uploads the working directory under `uv run`
    require("ray", "cluster.address")
    import ray

    if ray.is_initialized():
        return False
    with _own_ways():
        try:
            if address == "local":
                ray.init(
                    address="local",
                    num_cpus=None if cores is None else max(1, round(cores)),
                    include_dashboard=False,
                    _node_ip_address="127.0.0.1",
                    **QUIET,
                )
            else:
                _check_answers(address, timeout)
                ray.init(address=address, **QUIET)
        except MuarlError:
            raise
        except ConnectionError as problem:
            start = "start one with `ray start --head`, or say --cluster local"
            raise ConfigError(f"cluster.address is {address}, and no Ray cluster runs here: {start}") from problem
        except Exception as problem:
            ray.shutdown()
            raise ConfigError(
                f"cluster.address: Ray could not be started or joined: {_last_line(problem)}"
            ) from problem
    return True


@contextmanager
def _own_ways() -> Iterator[None]:
    """Ray replaces the handler of SIGTERM, and runs what RAY_RUNTIME_ENV_HOOK names: not here."""
    hook = os.environ.pop("RAY_RUNTIME_ENV_HOOK", None)
    main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM) if main else None
    try:
        yield
    finally:
        if hook is not None:
            os.environ["RAY_RUNTIME_ENV_HOOK"] = hook
        if main and before is not None:
            signal.signal(signal.SIGTERM, before)


def _check_answers(address: str, timeout: float) -> None:
    """Try the address from a process that can be ended: Ray itself tries for minutes, then ends the whole process."""
    if address != "auto":
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=min(KNOCK, timeout)).close()
        except OSError as problem:
            raise ConfigError(
                f"cluster.address is {address}, and nothing answers there ({problem}): check host and port of "
                "`ray start --head --port=PORT`, and that no firewall is between"
            ) from None
    script = f"import ray; ray.init(address={address!r}, log_to_driver=False, logging_level='ERROR')"
    try:
        tried = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise ConfigError(
            f"cluster.address is {address}: something listens there, but no Ray cluster answered within {timeout:.0f} s"
        ) from None
    if tried.returncode:
        lines = [line.strip() for line in (tried.stderr or tried.stdout).splitlines() if line.strip()]
        if any("Could not find any running Ray" in line for line in lines):
            raise ConnectionError(address)
        said = " ".join(lines[-8:]) if any("Version mismatch" in line for line in lines) else (lines or ["no word"])[-1]
        raise ConfigError(f"cluster.address is {address}, and Ray could not join it: {said}")


def _check_software(nodes: Sequence[dict[str, Any]], timeout: float) -> None:
    """ConfigError if a machine has other versions than this one."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    look = probe()
    asked = [
        (
            named(node),
            ray.remote(look)
            .options(num_cpus=0, scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False))
            .remote(),
        )
        for node in nodes
    ]
    try:
        # Not by name: several nodes of one machine have the same.
        software = [(name, answer_now(one, timeout, name)) for name, one in asked]
    except ProcessLost as problem:
        raise MuarlError(f"cluster: {problem}") from None
    check_same(look(), software)


def _reserve(parts: Sequence[ProcessGroup], timeout: float, spread: bool) -> Any:
    import ray
    from ray.exceptions import GetTimeoutError
    from ray.util import remove_placement_group
    from ray.util.placement_group import placement_group

    group = placement_group(bundles(parts), strategy="SPREAD" if spread else "PACK")
    try:
        ray.get(group.ready(), timeout=timeout)
    except GetTimeoutError:
        remove_placement_group(group)
        free = ", ".join(f"{v:g} {k}" for k, v in ray.available_resources().items() if k in ("CPU", "GPU"))
        raise MuarlError(
            f"cluster: its machines have room for the run, but not now: after {timeout:.0f} s only {free or 'nothing'} "
            "is free. Wait for what else runs there, or ask for less (cluster.*)"
        ) from None
    return group


def _last_line(problem: Exception) -> str:
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return lines[-1] if lines else type(problem).__name__
