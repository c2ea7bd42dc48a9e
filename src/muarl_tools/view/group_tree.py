"""The conversations of a group that branch, as a tree: those from the start, and under each those that begin as it
did."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from muarl.pages.markup import Child, Html, join, tag
from muarl.types.episode import BRANCH
from muarl_tools.view import queries
from muarl_tools.view.layout import Site, episode_at, link, outcome, signed
from muarl_tools.view.queries import IndexedEpisode
from muarl_tools.view.runs import EpisodeDetails, Run

MOST = 64
"""Conversations of a group that are looked at."""


def group_tree(site: Site, run: Run, told: EpisodeDetails) -> Html | None:
    """The tree of an episode's group; None where nothing branches in it."""
    at = told.at
    if at.group is None:
        return None
    members = run.ask(queries.of_group, at.group, at.stage, MOST)
    rows = {member.key: run.text(member) or {} for member in members}
    stems: list[IndexedEpisode] = []
    branches: dict[str, list[tuple[int, IndexedEpisode]]] = defaultdict(list)
    for member in members:
        left = _branch(rows[member.key])
        if left is None:
            stems.append(member)
        else:
            branches[left[0]].append((left[1], member))
    if not branches:
        return None
    known = {stem.name for stem in stems}
    lost = [(turn, member) for of, own in branches.items() if of not in known for turn, member in own]
    items = [
        tag("li", _entry(site, run, told, stem, None), _left(site, run, told, branches.get(stem.name, ())))
        for stem in stems
    ]
    return join(
        tag("h2", "The group’s conversations", id="tree"),
        tag("p", "Those under another begin as it did, up to the agent’s turn of that number, and are compared there."),
        tag("ul", items, _left(site, run, told, lost), class_="tree"),
    )


def _left(site: Site, run: Run, told: EpisodeDetails, own: Any) -> Html | None:
    if not own:
        return None
    ordered = sorted(own, key=lambda pair: (pair[0], pair[1].name))
    return tag("ul", [tag("li", _entry(site, run, told, member, turn)) for turn, member in ordered])


def _entry(site: Site, run: Run, told: EpisodeDetails, member: IndexedEpisode, turn: int | None) -> Html:
    here = member.key == told.at.key
    parts: list[Child] = [
        None if turn is None else tag("span", f"from turn {turn + 1} ", class_="label"),
        tag("strong", member.name) if here else link(site, episode_at(run, member.key), member.name),
        " ",
        outcome(member),
        None if member.advantage is None else f" {signed(member.advantage)}",
    ]
    return tag("span", parts)


def _branch(row: Mapping[str, Any]) -> tuple[str, int] | None:
    """Of what episode it left which of the agent's turns, as far as its row says so in a form that can be read."""
    tags = row.get("tags")
    told = tags.get(BRANCH) if isinstance(tags, Mapping) else None
    if not isinstance(told, Mapping) or not isinstance(told.get("agent_turn"), int):
        return None
    return str(told.get("of")), told["agent_turn"]
