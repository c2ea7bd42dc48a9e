"""Two episodes side by side, up to where they differ and on."""

from __future__ import annotations

from muarl.pages.conversations import conversation, verdict_chips, wanted
from muarl.pages.markup import Child, join, tag
from muarl.pages.words import stage_text
from muarl.rewards.state_changes import ReplayOutcome
from muarl_tools.view.episode_page import differences, notes
from muarl_tools.view.layout import (
    Site,
    episode_at,
    frame,
    link,
    task_at,
)  # fmt: skip
from muarl_tools.view.runs import EpisodeDetails, Library, Run


def pair_page(site: Site, library: Library, first: tuple[Run, int], second: tuple[Run, int]) -> str | None:
    """Two episodes side by side; None if either is missing."""
    sides = [(run, run.told(key)) for run, key in (first, second)]
    if any(told is None for _, told in sides):
        return None
    both = [(run, told) for run, told in sides if told is not None]
    same = _shared(both[0][1], both[1][1])
    columns = []
    for run, told in both:
        name = stage_text(told.at.stage, told.at.step)
        named = f"{run.name}, {name}" if len(library.runs) > 1 else name
        between = notes(told)
        if 0 < same < len(told.episode.messages):
            mark = tag("p", "From here on they differ.", class_="fork")
            # After the last message that both share; a tool's answer stands with the call that it answers.
            last = same - 1
            while last and told.episode.messages[last].role == "tool":
                last -= 1
            spot = (last, len(told.episode.messages[last].tool_calls) - 1)
            between[spot] = join(between.get(spot), mark)
        wrong = told.replay.wrong if isinstance(told.replay, ReplayOutcome) else None
        columns.append(
            tag(
                "div",
                tag("h2", link(site, episode_at(run, told.at.key), named)),
                verdict_chips(told.episode),
                # Always there, so that both conversations begin at one height.
                tag("div", tag("h4", "Wrong in the database"), differences(wrong, "is", "should be"), class_="diff")
                if wrong
                else tag("div"),
                conversation(told.episode.messages, told.gold or (), between),
            )
        )
    told = both[0][1]
    tasks = {t.at.task for _, t in both}
    title = told.at.task if len(tasks) == 1 else "Two episodes"
    run = first[0]
    scenario = told.scenario or both[1][1].scenario
    body: list[Child] = [
        tag("div", tag("p", "Side by side", class_="eyebrow"), tag("h1", title), class_="title"),
        tag("p", link(site, task_at(run, told.at.task), "The task and its other attempts"), rel="up"),
        wanted(scenario, told.gold),
        tag("div", columns, class_="pair wide-pair"),
    ]
    return frame(site, library, f"{title}, side by side", "episodes", run, *body)


def _shared(first: EpisodeDetails, second: EpisodeDetails) -> int:
    """How many messages both begin with."""
    count = 0
    for a, b in zip(first.episode.messages, second.episode.messages, strict=False):
        calls = [[(c.name, dict(c.arguments)) for c in m.tool_calls] for m in (a, b)]
        if (a.role, a.content or "", calls[0]) != (b.role, b.content or "", calls[1]):
            break
        count += 1
    return count
