"""The index: whole, incremental, indifferent to what befalls it, and never trusting a line."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import astuple
from pathlib import Path

import pytest

from muarl.observe.rundir import RunDirectory
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Episode, StopReason, TokenTrace, Turn, Usage, Verdict, write_episodes
from muarl_tools.view import queries
from muarl_tools.view import store as store_module
from muarl_tools.view.queries import Filter
from muarl_tools.view.rows import key_text, place_of, row_of, text_key
from muarl_tools.view.runs import Library
from muarl_tools.view.store import Store, cache_folder
from support.viewing import ATTEMPTS, STEPS, TASKS, indexed


def episode(number: int, **changes: object) -> Episode:
    turns = [Turn(Message("user", f"hello {number}")), Turn(Message("assistant", "bye"))]
    settings: dict[str, object] = {"verdict": Verdict(float(number % 2)), "tags": {"intent": "greet"}} | changes
    return Episode(f"e{number}", f"t{number % 3}", "d", turns, StopReason.USER_STOP, number, **settings)  # type: ignore[arg-type]


def lines(*episodes: Episode) -> bytes:
    return b"".join(json.dumps(e.to_json()).encode() + b"\n" for e in episodes)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """An empty run's folder, which hides the session's run here."""
    folder = tmp_path / "run"
    (folder / "episodes").mkdir(parents=True)
    return folder


@pytest.fixture
def store(run: Path, tmp_path: Path) -> Store:
    return Store(run, tmp_path / "index.sqlite")


def names(store: Store) -> list[str]:
    with store.reading() as db:
        return [e.name for e in queries.episodes(db, Filter(sort="oldest"), size=1000)]


def test_a_row_says_what_an_episode_holds() -> None:
    turns = [
        Turn(Message("assistant", "Hi!")),
        Turn(Message("user", "help")),
        Turn(Message("assistant", None, (ToolCall("1", "look"), ToolCall("2", "think")))),
        Turn(Message("tool", "no such", tool_call_id="1", error=True)),
        Turn(Message("tool", "hm", tool_call_id="2")),
        Turn(Message("user", None, (ToolCall("3", "press", requestor="user"),))),
        Turn(Message("tool", "failed", tool_call_id="3", requestor="user", error=True)),
        Turn(Message("assistant", "done")),
    ]
    trace = TokenTrace()
    trace.append_given([1, 2])
    trace.append_sampled([3, 4, 5], [-0.1] * 3, 7)
    told = Episode(
        "a#1", "t", "d", turns, StopReason.TRANSFER, 5, "g", tokens=trace, verdict=Verdict(0.5),
        tags={"intent": "fix", "persona": "terse", "difficulty": 2, "user_errors": [{}], "advantage": -0.25},
        timings={"total": 3.5}, agent_usage=Usage(cost=0.5), user_usage=Usage(cost=0.25),
    )  # fmt: skip
    row = row_of(lines(told), "train-0012", place_of("train-0012"))
    assert (row.stage, row.step, row.moment) == ("training", 12, 12)
    assert (row.reward, row.solved, row.stop) == (0.5, 0, "transfer")
    assert (row.turns, row.tokens, row.calls, row.general, row.tool_errors) == (2, 3, 2, 1, 1)
    assert (row.user_errors, row.cost, row.seconds, row.advantage) == (1, 0.75, 3.5, -0.25)
    assert (row.intent, row.persona, row.difficulty, row.tools) == ("fix", "terse", "2", "\nlook\nthink\n")
    # Written otherwise, it says the same: the shortcut past the token lists is a shortcut only.
    other = json.dumps(told.to_json(), separators=(",", ":")).encode()
    assert row_of(other, "train-0012", place_of("train-0012")) == row
    call = ToolCall("1", "look", {"tokens": {"ids": [1], "loss_mask": [1, 1, 1, 1]}})
    ended = [*turns[:2], Turn(Message("assistant", None, (ToolCall("1", "fetch"),))), Turn(Message("tool", "ok"))]
    for stop, general in ((StopReason.TRANSFER, 1), (StopReason.USER_STOP, 0)):
        handed = lines(Episode("c", "t", "d", ended, stop))
        assert row_of(handed, "eval", place_of("eval")).general == general, "whatever the tool is called"
    trap = Episode("b", "t", "d", [Turn(Message("assistant", None, (call,)))], StopReason.USER_STOP, tokens=trace)
    assert row_of(lines(trap), "eval", place_of("eval")).tokens == 3


def test_stages_stand_in_the_order_of_a_run() -> None:
    stems = ["demonstrations", "eval-before", "train-0000", "validation-0004", "train-0030", "eval-after"]
    moments = [place_of(stem).moment for stem in stems]
    assert moments == sorted(moments)
    assert place_of("bank-generated").stage == "bank-generated"


def test_keys_stand_in_addresses() -> None:
    for key in (0, 1, -1, (1 << 63) - 1, -(1 << 63)):
        assert text_key(key_text(key)) == key
    for text in ("", "123", "g" * 16, "0" * 17, "../../etc/passwd", "٣" * 16):
        assert text_key(text) is None


def test_what_is_appended_is_read_and_nothing_twice(run: Path, store: Store) -> None:
    path = run / "episodes" / "eval.jsonl"
    path.write_bytes(lines(episode(0)))
    assert store.refresh() and names(store) == ["e0"]
    before = store.version
    assert not store.refresh() and store.version == before
    whole = lines(episode(1), episode(2))
    with open(path, "ab") as file:
        file.write(whole[:-40])
    assert store.refresh() and names(store) == ["e0", "e1"]  # half a line is none yet
    assert store.progress().complete
    with open(path, "ab") as file:
        file.write(whole[-40:])
    assert store.refresh() and names(store) == ["e0", "e1", "e2"]


def test_a_file_that_was_replaced_or_edited_is_read_again(run: Path, store: Store) -> None:
    path = run / "episodes" / "train-0001.jsonl"
    write_episodes(path, [episode(0), episode(1)])
    store.refresh()
    write_episodes(path, [episode(5), episode(6), episode(7)])  # another file of that name
    store.refresh()
    assert names(store) == ["e5", "e6", "e7"]
    edited = path.read_bytes().replace(b"hello 6", b"HELLO 6").replace(b'"e6"', b'"x6"')
    path.write_bytes(edited)  # in place, and no longer than it was
    os.utime(path, ns=(1, 1))
    store.refresh()
    assert names(store) == ["e5", "x6", "e7"]
    path.write_bytes(lines(episode(9)))
    store.refresh()
    assert names(store) == ["e9"]
    path.unlink()
    store.refresh()
    assert names(store) == []


def test_of_an_episode_played_again_the_last_holds(run: Path, store: Store) -> None:
    path = run / "episodes" / "eval.jsonl"
    path.write_bytes(lines(episode(1, verdict=None), episode(2), episode(1)))
    store.refresh()
    with store.reading() as db:
        found = {e.name: e.reward for e in queries.episodes(db, Filter())}
    assert found == {"e1": 1.0, "e2": 0.0}


@pytest.mark.parametrize(
    "line",
    [
        b"\n", b"{\n", b"null\n", b"[]\n", b"17\n", b'"text"\n', b'{"schema": 1}\n', b"\xff\xfe\x00\n",
        b"[" * 100_000 + b"\n",
        lines(episode(1)).replace(b'"user_stop"', b'"exploded"'),
        lines(episode(1)).replace(b'"reward": 1.0', b'"reward": NaN'),
        lines(episode(1)).replace(b'"reward": 1.0', b'"reward": "much"'),
        lines(episode(1)).replace(b'"turns": [', b'"turns": [17, '),
    ],
)  # fmt: skip
def test_a_line_that_is_no_episode_is_passed_over_and_counted(run: Path, store: Store, line: bytes) -> None:
    path = run / "episodes" / "eval.jsonl"
    path.write_bytes(lines(episode(3)) + line + lines(episode(4)))
    store.refresh()
    assert names(store) == ["e3", "e4"]
    progress = store.progress()
    assert progress.complete and progress.broken == bool(line.strip())
    if progress.broken:
        assert progress.problem is not None and "eval.jsonl" in progress.problem


def test_texts_that_a_database_cannot_hold_are_held(run: Path, store: Store) -> None:
    odd = episode(1, tags={"intent": "a\x00b\udc80", "persona": ["no", "word"], "advantage": None})
    odd.id = "\ud800"
    odd.agent_usage = Usage(completion_tokens=10**30)
    (run / "episodes" / "eval.jsonl").write_bytes(lines(odd))
    (run / "tasks.jsonl").write_bytes(b'{"id": "\\ud800"}\n{"id": ["x"]}\nnull\n')
    store.refresh()
    assert names(store) == ["?"] and store.progress().complete


@pytest.mark.parametrize("harm", ["deleted", "no database", "cut", "another version"])
def test_an_index_that_was_spoilt_is_made_anew(run: Path, store: Store, harm: str) -> None:
    (run / "episodes" / "eval.jsonl").write_bytes(lines(*(episode(n) for n in range(50))))
    store.refresh()
    for suffix in ("-wal", "-shm"):
        Path(f"{store.path}{suffix}").unlink(missing_ok=True)
    if harm == "deleted":
        store.path.unlink()
    elif harm == "no database":
        store.path.write_bytes(b"this is a letter to my aunt" * 400)
    elif harm == "cut":
        store.path.write_bytes(store.path.read_bytes()[:5000])
    else:
        import sqlite3

        with sqlite3.connect(store.path) as db:
            db.execute("PRAGMA user_version = 99")
    again = Store(run, store.path)
    again.refresh()
    again.refresh()
    assert len(names(again)) == 50


def test_an_index_deleted_under_a_viewer_comes_back(run: Path, store: Store) -> None:
    (run / "episodes" / "eval.jsonl").write_bytes(lines(episode(1)))
    store.refresh()
    for suffix in ("", "-wal", "-shm"):
        Path(f"{store.path}{suffix}").unlink(missing_ok=True)
    assert names(store) == []
    store.refresh()
    assert names(store) == ["e1"]


def test_two_viewers_may_share_an_index(run: Path, tmp_path: Path) -> None:
    for n in range(12):
        write_episodes(run / "episodes" / f"train-{n:04d}.jsonl", [episode(n * 10 + i) for i in range(10)])
    both = [Store(run, tmp_path / "shared.sqlite") for _ in range(2)]
    threads = [threading.Thread(target=s.refresh) for s in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(names(both[0])) == sorted(f"e{n}" for n in range(120))


def test_large_files_are_read_in_pieces(run: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "CHUNK", 2000)
    (run / "episodes" / "eval.jsonl").write_bytes(lines(*(episode(n) for n in range(30))))
    seen = []
    for _ in store.steps():
        progress = store.progress()
        seen.append((progress.done / progress.size, len(names(store))))
    assert seen == sorted(seen) and len({share for share, _ in seen}) > 4
    assert seen[-1] == (1.0, 30)


def test_the_run_is_only_read(run: Path, store: Store) -> None:
    (run / "episodes" / "eval.jsonl").write_bytes(lines(episode(1)))
    before = sorted(p for p in run.rglob("*"))
    run.chmod(0o555)
    try:
        store.refresh()
    finally:
        run.chmod(0o755)
    assert sorted(p for p in run.rglob("*")) == before and names(store) == ["e1"]


def test_the_cache_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "muarl" / "view"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home" / ".cache" / "muarl" / "view"
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert "muarl-view" in cache_folder().name


class TestQueries:
    @pytest.fixture
    def library(self, tmp_path: Path, finished: RunDirectory) -> Library:
        return indexed(tmp_path, finished.path)

    def ask(self, library: Library, **wanted: str) -> list[queries.IndexedEpisode]:
        with library.runs[0].store.reading() as db:
            found = queries.episodes(db, Filter.of(wanted), size=1000)
            assert len(found) == queries.count(db, Filter.of(wanted))
            return found

    def test_filters(self, library: Library) -> None:
        everything = self.ask(library)
        assert len(everything) == STEPS * TASKS * ATTEMPTS + 8
        for name, value in (("stage", "training"), ("intent", everything[-1].intent), ("stop", "infrastructure")):
            assert self.ask(library, **{name: value}) == [e for e in everything if getattr(e, name) == value]
        assert {e.step for e in self.ask(library, steps="3")} == {3}
        assert {e.step for e in self.ask(library, steps="3-5")} == {3, 4, 5}
        assert {e.step for e in self.ask(library, steps="10-")} == {10, 11}
        assert all(e.solved == 1 for e in self.ask(library, result="solved"))
        assert [e.reward for e in self.ask(library, result="unscored")] == [None]
        assert [e.user_errors for e in self.ask(library, trouble="user")] == [1]
        tool = next(t for t in everything[0].tools.split("\n") if t)
        assert self.ask(library, tool=tool) and not self.ask(library, tool=tool[:-1])
        group = self.ask(library, stage="training")[0].group
        assert len(self.ask(library, group=str(group))) == ATTEMPTS

    def test_what_is_asked_amiss_asks_nothing(self, library: Library) -> None:
        everything = len(self.ask(library))
        odd = {"result": "' OR 1", "sort": "moment; DROP TABLE episodes", "steps": "0 OR 1=1", "trouble": "x"}
        assert len(self.ask(library, **odd)) == everything
        for value in ("'; DROP TABLE episodes; --", "%", "_", '"'):
            assert self.ask(library, intent=value) == [] and self.ask(library, task=value) in ([], self.ask(library))
        assert len(self.ask(library)) == everything

    @pytest.mark.parametrize("sort", sorted(queries.SORTS))
    def test_neighbours_follow_the_list(self, library: Library, sort: str) -> None:
        found = self.ask(library, sort=sort, stage="training")
        wanted = Filter(stage="training", sort=sort)
        keys = [None, *(e.key for e in found), None]
        with library.runs[0].store.reading() as db:
            for n in (0, 1, 30, len(found) - 1):
                assert queries.neighbours(db, wanted, found[n]) == (keys[n], keys[n + 2])

    def test_tasks_are_learnt_forgotten_and_hard(self, library: Library) -> None:
        with library.runs[0].store.reading() as db:
            fates = queries.fates(db)
        trained = {name: [f.name for f in queries.chosen(fates, name)] for name in ("learnt", "forgotten", "hardest")}
        first, second, third = (f"{self.ask(library, steps='0', sort='oldest')[n * ATTEMPTS].task}" for n in range(3))
        assert first in trained["learnt"] and second in trained["forgotten"] and third in trained["hardest"]
        assert first not in trained["forgotten"] and third not in trained["learnt"]
        assert all(f.attempts for f in fates) and "training" not in [astuple(f)[0] for f in fates]

    def test_moments_of_one_task(self) -> None:
        fate = queries.Fate("t", seen=[(0, 0.0, 4), (1, 0.5, 4), (2, 1.0, 4)])
        assert (fate.half(False), fate.half(True), fate.change) == (0.0, 0.75, 0.75)
        assert queries.Fate("t", seen=[(0, 1.0, 4)]).change is None
