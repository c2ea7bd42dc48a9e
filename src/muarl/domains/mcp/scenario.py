"""The services that come with muarl on public MCP servers: a folder of readable files each, under ``scenarios/``.

policy.md      the agent's policy; policy_compact.md: the tiny size's
tools.json     the server's tools as it describes them (``muarl mcp tools NAME --json``)
domain.py      the domain: its server and tools, what an episode begins with, and what of its end counts
rehearsal.py   the same tools in this process, with which tasks are made
world.py       what tasks begin with, from seeds;  intents.py   what people want, and how each request is served
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from muarl.domains.kit.service import WorldSize
from muarl.domains.mcp import servers
from muarl.domains.mcp.domain import McpDomain
from muarl.domains.mcp.launch import ServerLimits, over_stdio
from muarl.domains.mcp.tools import from_json
from muarl.types.chat import ToolSpec

SIZES = (WorldSize("tiny", 1, 1, tiny=True), WorldSize("medium", 1, 1))
"""Each task has a world of its own: an episode's folder is written anew in any case."""


class ScenarioDomain(McpDomain):
    """The domain of one service at one size."""

    folder: ClassVar[Path]
    """Where its files are."""
    public: ClassVar[str]
    """The server's name."""
    arguments: ClassVar[tuple[str, ...]] = ()
    """What the server is started with."""
    env: ClassVar[Mapping[str, str]] = {}
    """What the server is started with."""
    bounds: ClassVar[ServerLimits] = ServerLimits()
    """See ``launch``."""
    slow_reads: ClassVar[Literal["drop", "answer"]] = "drop"
    """See ``launch``."""
    tiny_tools: ClassVar[tuple[str, ...]]
    """What the tiny size offers."""

    def __init__(self, size: str = "medium", *, policy: str | None = None, places: int = 0) -> None:
        names = [world_size.name for world_size in SIZES]
        if size not in names:
            raise ValueError(f"size must be one of {', '.join(names)}, not {size!r}")
        self.size, tiny = size, size == "tiny"
        launch = over_stdio(
            self.public, *servers.server(self.public).command(*self.arguments), env=self.env, keeps="folder",
            slow_reads=self.slow_reads, bounds=self.bounds,
        )  # fmt: skip
        if policy is None:
            policy = (self.folder / ("policy_compact.md" if tiny else "policy.md")).read_text(encoding="utf-8").strip()
        super().__init__(
            launch=launch,
            listing=from_json(json.loads((self.folder / "tools.json").read_text(encoding="utf-8"))),
            policy=policy,
            tools=self.tiny_tools if tiny else None,
            places=places,
        )

    def tool_specs(self, requestor: Any = "assistant") -> tuple[ToolSpec, ...]:
        """The tools one side has; at the tiny size with the first sentence of their descriptions only."""
        specs = super().tool_specs(requestor)
        return tuple(_short(s) for s in specs) if self.size == "tiny" else specs

    def missing(self) -> str | None:
        """What keeps the server from running, with the remedy."""
        return servers.server(self.public).missing()


def _short(spec: ToolSpec) -> ToolSpec:
    first = spec.description.split(". ")[0].rstrip(".")
    properties = {n: _bare(s) for n, s in spec.parameters["properties"].items()}
    parameters = {"type": "object", "properties": properties, "required": spec.parameters["required"]}
    return ToolSpec(spec.name, first, parameters)


def _bare(schema: Any) -> Any:
    """A schema without words."""
    if isinstance(schema, Mapping):
        return {k: _bare(v) for k, v in schema.items() if k not in ("description", "title", "additionalProperties")}
    return [_bare(s) for s in schema] if isinstance(schema, list) else schema
