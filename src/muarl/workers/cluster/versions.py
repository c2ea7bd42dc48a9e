"""Whether the machines of a cluster have the same software. Differences show as wrong numbers or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from muarl.basics.errors import ConfigError

Software = Mapping[str, str]


def probe() -> Callable[[], dict[str, str]]:
    """A function that says what this process would run: versions of python, ray, torch and muarl, a digest of muarl's
    source files, and why muarl cannot be imported, if it cannot.

    Functions within functions travel by value, so that it runs where there is another muarl or none.
    """

    def software() -> dict[str, str]:
        import hashlib
        import platform
        from importlib import import_module, metadata
        from pathlib import Path

        found = {"python": ".".join(platform.python_version_tuple()[:2])}
        for name in ("ray", "torch"):
            try:
                found[name] = metadata.version(name).partition("+")[0]
            except metadata.PackageNotFoundError:
                found[name] = "none"
        try:
            muarl = import_module("muarl")  # whichever is there
            root = Path(str(muarl.__file__)).parent
            digest = hashlib.sha256()
            for path in sorted(p for package in root.parent.glob("muarl*") for p in package.rglob("*.py")):
                digest.update(path.relative_to(root.parent).as_posix().encode() + b"\0" + path.read_bytes())
            found["muarl"] = str(getattr(muarl, "__version__", "unknown"))
            found["source"] = digest.hexdigest()[:12]
        except Exception as problem:
            found["muarl"] = "none"
            found["problem"] = f"{type(problem).__name__}: {problem}"
        return found

    return software


def check_same(here: Software, there: Sequence[tuple[str, Software]]) -> None:
    """ConfigError names the first of ``there`` (machine, software) that differs from ``here``, and how."""
    for name, found in there:
        if found.get("muarl") == "none":
            why = found.get("problem", "")
            raise ConfigError(
                f"cluster.address: {name} has no muarl that can be imported ({why}): install muarl {here['muarl']} in "
                "the environment in which `ray start` runs there"
            )
        differs = [k for k in ("muarl", "python", "ray", "torch") if found.get(k) != here.get(k)]
        if differs:
            theirs = ", ".join(f"{k} {found.get(k)}" for k in differs)
            ours = ", ".join(f"{k} {here.get(k)}" for k in differs)
            raise ConfigError(
                f"cluster.address: {name} has {theirs}, and this machine {ours}: install the same on both"
            )
        if found.get("source") != here.get("source"):
            raise ConfigError(
                f"cluster.address: {name} has muarl {found['muarl']} with other source files than this machine "
                f"({found.get('source')} there, {here.get('source')} here): install the same commit on both"
            )


def named(node: Mapping[str, Any]) -> str:
    """A machine's name in messages, from what Ray says of it."""
    address, host = node.get("NodeManagerAddress"), node.get("NodeManagerHostname")
    return f"the node {host} ({address})" if host and host != address else f"the node {address}"
