"""The files of code that a run takes place in: what the person approved for it counts again when the run is resumed.

A run's folder cannot vouch for the code that it names. So what was approved stands in the state folder
(``config/trust.py``), for the run at that path alone: which file, and its SHA-256 sum. ``--resume`` imports the file if
it is still the same; a file that has changed must be named again, and so must a module, which has no one file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from muarl.basics.errors import ConfigError
from muarl.config.trust import recall
from muarl.environments.registry import approve, approved, canonical, is_reference

Environments = Iterable[tuple[str, str]]
"""The setting and the name of each environment that a run's configuration names (``RunConfig.environments``)."""


def code_to_remember(environments: Environments) -> dict[str, str]:
    """The files of code among a run's environments that this process may import, each with its sum, as
    ``trust.remember`` takes them."""
    files = {reference: _sum(reference) for reference in _files(environments) if reference in approved()}
    return {_key(reference): content for reference, content in files.items() if content is not None}


def approve_remembered(environments: Environments, run: Path) -> None:
    """Approve again the files of code that were approved for the run in this folder, before it is resumed.

    ConfigError, with the option to add, for a file that has changed or is gone. What was never approved for this run
    stays refused where it is looked for (``registry.find``).
    """
    remembered = recall(run.expanduser() / "config.yaml")
    for reference in _files(environments):
        contents = remembered.get(_key(reference))
        if contents is None or reference in approved():
            continue
        file, _, name = reference.rpartition(":")
        content = _sum(reference)
        if content is None:
            raise ConfigError(
                f"--resume: {run} takes place in {reference}, and there is no file {file}. If it has moved, name it "
                f"where it is now: --domain FILE.py:{name}"
            )
        if content not in contents:
            raise ConfigError(
                f"--resume: {file} has changed since {run} was last started with it, and would be imported: if you "
                f"trust it as it is now, and the run may go on with it, add --domain {reference}"
            )
        approve(reference)


def _files(environments: Environments) -> list[str]:
    """The references to files among them, in their canonical form."""
    names = [name for _, name in environments if is_reference(name)]
    return [canonical(name) for name in dict.fromkeys(names) if name.rpartition(":")[0].endswith(".py")]


def _key(reference: str) -> str:
    return f"code {reference}"


def _sum(reference: str) -> str | None:
    """The SHA-256 sum of the file of a reference; None if there is none."""
    file = Path(reference.rpartition(":")[0])
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None
