"""A group that branches, and turns with advantages of their own, in the viewer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from muarl.observe.rundir import RunDirectory
from muarl.types.episode import BRANCH, Episode
from muarl_tools.view.rows import key_text
from support.viewing import indexed, play, writing_tasks
from support.viewing_pages import Page, found, look


def group() -> list[Episode]:
    """Two stems, and one that left the first at its second turn."""
    (task,) = writing_tasks("train", 1)
    episodes = []
    for name, good in (("stem-a", True), ("stem-b", False), ("branch-c", False)):
        episode = play(task, good, "0.0/g", advantage=0.5 if good else -0.5)
        episode.id = name
        episodes.append(episode)
    branch = episodes[2]
    own = [n for n, turn in enumerate(branch.turns) if turn.span is not None]
    branch.tags[BRANCH] = {"of": "stem-a", "turn": own[1], "agent_turn": 1}
    branch.turns = [replace(t, advantage=-0.75) if n >= own[1] and t.span else t for n, t in enumerate(branch.turns)]
    return episodes


def page(tmp_path: Path, episodes: list[Episode], name: str, **query: str) -> Page:
    with RunDirectory(tmp_path, "branching") as run:
        run.write_config({"name": "branching", "domain": {"name": "retail-generated", "size": "tiny"}})
        run.write_episodes("train-0000", episodes)
    library = indexed(tmp_path, run.path)
    (key,) = [key_text(e.key) for e in found(library) if e.name == name]
    return look(library, "runs", "branching", "episodes", key, **query)


def test_a_branch_stands_under_the_conversation_that_it_left(tmp_path: Path) -> None:
    shown = page(tmp_path, group(), "branch-c")
    tree = shown.html[shown.html.index('id="tree"') :]
    a, c, b = tree.index("stem-a"), tree.index("branch-c"), tree.index("stem-b")
    assert a < c < b and "from turn 2" in tree[a:c]
    assert "<strong>branch-c</strong>" in tree and "<strong>stem-a" not in tree
    assert "Advantage of this turn: −0.75" in shown.shown
    assert shown.shown.count("Advantage of this turn") == len([t for t in group()[2].turns if t.advantage is not None])


def test_each_token_has_its_turns_advantage(tmp_path: Path) -> None:
    (tokens,) = [e for e in group() if e.id == "branch-c"]
    shown = page(tmp_path, group(), "branch-c", by="token")
    own = sum(a != 0 for a in tokens.token_advantages() or ())
    assert own and shown.html.count("advantage −0.75") == own and "advantage −0.50" not in shown.html
    assert "Mean advantage of turns" in shown.shown


def test_of_a_branch_whose_stem_was_not_kept(tmp_path: Path) -> None:
    shown = page(tmp_path, group()[1:], "stem-b")
    assert "branch-c" in shown.html[shown.html.index('id="tree"') :]


def test_no_tree_where_nothing_branches(tmp_path: Path) -> None:
    shown = page(tmp_path, group()[:2], "stem-b")
    assert 'id="tree"' not in shown.html and "Advantage of this turn" not in shown.shown


def test_odd_tags_are_no_branch(tmp_path: Path) -> None:
    episodes = group()
    episodes[1].tags[BRANCH], episodes[2].tags[BRANCH] = ["of"], {"of": "stem-a", "agent_turn": "1"}
    assert 'id="tree"' not in page(tmp_path, episodes, "branch-c").html
