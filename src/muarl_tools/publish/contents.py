"""What is published: the facts that every form of a published folder is made of, and what follows from them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from muarl.basics.version import __version__
from muarl.environments.environment import Environment
from muarl_tools.publish.filling import filled
from muarl_tools.publish.folder import WHEELS, Content
from muarl_tools.publish.measuring import EnvironmentFigures
from muarl_tools.publish.own_files import OwnFiles

MUARLS = "apache-2.0"
"""The licence of muarl, as hubs write it."""

CODE = "environment"
"""The folder that the files of an environment of one's own are copied into."""


def package_name(environment: str) -> str:
    """The name of a Python package for an environment's name."""
    name = re.sub(r"[^a-z0-9]+", "_", environment.lower()).strip("_")
    return name if name.startswith("muarl_") else f"muarl_{name}"


@dataclass(frozen=True, slots=True)
class Contents:
    """What a published folder is made of."""

    environment: Environment
    """The environment."""

    own: OwnFiles | None
    """The files that it needs; None for muarl's own environments."""

    size: str | None
    """The size that was measured, and that is played by default; None where it comes in one."""

    tasks: int
    """How many tasks were asked for, of each split."""

    seed: int
    """The seed of generated tasks."""

    measured: EnvironmentFigures
    """The figures of its card, and the episode of its smoke test."""

    license: str
    """The licence, as hubs write it."""

    wheel: Path
    """muarl's wheel."""

    licenses: Mapping[str, Content]
    """muarl's licence and notices, by the names of their files."""

    @property
    def package(self) -> str:
        """The name of the Python package, such as "muarl_retail_generated"."""
        return package_name(self.environment.name)

    @property
    def title(self) -> str:
        """The name for people."""
        return self.environment.name

    @property
    def about(self) -> str:
        """One line about it."""
        about = " ".join(self.environment.about.split())
        return about or f"Conversations of an agent with the {self.environment.caller}s of {self.environment.name}."

    def shared_files(self, code: str = CODE) -> dict[str, Content]:
        """What every form has: the wheel, the licences, the recorded episode and, below ``code``, the files of an
        environment of one's own."""
        own = {} if self.own is None else {f"{code}/{name}": path for name, path in self.own.files.items()}
        return {**self.licenses, **own, f"{WHEELS}/{self.wheel.name}": self.wheel}

    def record(self, form: str) -> dict[str, Any]:
        """What the folder's record says."""
        return {
            "form": form,
            "environment": self.environment.name,
            "muarl": __version__,
            "size": self.size,
            "tasks": self.tasks,
            "seed": self.seed,
            "license": self.license,
            "split": self.measured.split,
            "scores": [asdict(score) for score in self.measured.scores],
        }

    def render(self, template: str, **more: Any) -> str:
        """A template with these contents, as ``it``, and what else it needs."""
        return filled(template, it=self, version=__version__, code=CODE, **more)
