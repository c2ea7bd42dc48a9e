"""findings.jsonl in the index: read on, read again, counted, and filtered by."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muarl.audit.findings import LAYERS, SEVERITIES, Finding, write_findings
from muarl.types.episode import write_episodes
from muarl_tools.view import queries
from muarl_tools.view.queries import Filter
from muarl_tools.view.store import Store
from support.viewing_audit import ASKED, READ, episode, lines


def names(store: Store, **wanted: str) -> list[str]:
    with store.reading() as db:
        out = [e.name for e in queries.episodes(db, Filter.of({"sort": "oldest"} | wanted), size=1000)]
        assert len(out) == queries.count(db, Filter.of(wanted))
        return out


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    (folder / "episodes").mkdir(parents=True)
    return folder


@pytest.fixture
def store(run: Path, tmp_path: Path) -> Store:
    return Store(run, tmp_path / "index.sqlite")


@pytest.mark.parametrize("first", ["episodes", "findings"])
def test_findings_and_episodes_may_come_in_any_order(run: Path, store: Store, first: str) -> None:
    def write(what: str) -> None:
        if what == "episodes":
            write_episodes(run / "episodes" / "eval.jsonl", [episode("a#0"), episode("a#1")])
        else:
            (run / "findings.jsonl").write_bytes(lines(("a#1", READ)))

    write(first)
    store.refresh()
    assert names(store, severity="catastrophic") == []
    write("findings" if first == "episodes" else "episodes")
    store.refresh()
    assert names(store, severity="catastrophic") == ["a#1"] and store.progress().complete


def test_findings_are_read_on_and_again(run: Path, store: Store) -> None:
    write_episodes(run / "episodes" / "eval.jsonl", [episode("a#0"), episode("a#1"), episode("b#0")])
    path = run / "findings.jsonl"
    path.write_bytes(lines(("a#0", ASKED)))
    store.refresh()
    assert names(store, severity="violation") == ["a#0"]
    before = store.version
    assert not store.refresh() and store.version == before
    with open(path, "ab") as file:
        file.write(lines(("b#0", READ)) + lines(("a#1", READ))[:-9])
    store.refresh()
    assert names(store, severity="violation") == ["a#0", "b#0"]  # half a line is none yet
    assert store.progress().complete
    write_findings(path, [({"file": "eval", "episode": "a#1"}, [ASKED])])  # another file in its place
    store.refresh()
    assert names(store, severity="violation") == ["a#1"]
    path.unlink()
    store.refresh()
    assert names(store, severity="note") == [] and len(names(store)) == 3


def test_findings_of_one_name_in_two_files_are_told_apart(run: Path, store: Store) -> None:
    for stem in ("eval-before", "eval-after"):
        write_episodes(run / "episodes" / f"{stem}.jsonl", [episode("a#0")])
    (run / "findings.jsonl").write_bytes(lines(("a#0", READ), file="eval-after") + lines(("a#0", ASKED), file=None))
    store.refresh()
    with store.reading() as db:
        assert [e.stage for e in queries.episodes(db, Filter(severity="note"))] == ["after"]
    write_episodes(run / "episodes" / "eval.jsonl", [episode("a#0")])  # that of lines which name no file
    store.refresh()
    with store.reading() as db:
        assert [e.stage for e in queries.episodes(db, Filter(rule="write-without-consent"))] == ["evaluation"]


@pytest.mark.parametrize(
    "line",
    [
        b"{\n", b"null\n", b"\xff\n", b"[" * 100_000 + b"\n",
        lines(("a#0", READ)).replace(b'"catastrophic"', b'"dire"'),
        lines(("a#0", READ)).replace(b'"a#0"', b"17"), lines(("a#0", READ)).replace(b'"safety"', b'["safety"]'),
        lines(("a#0", READ)).replace(b'"message": 2', b'"message": -1'),
    ],
)  # fmt: skip
def test_a_line_that_is_no_finding_is_passed_over_and_counted(run: Path, store: Store, line: bytes) -> None:
    write_episodes(run / "episodes" / "eval.jsonl", [episode("a#0"), episode("a#1")])
    (run / "findings.jsonl").write_bytes(line + lines(("a#1", READ)))
    store.refresh()
    assert names(store, severity="note") == ["a#1"]
    progress = store.progress()
    assert progress.complete and progress.broken == 1
    assert progress.problem is not None and progress.problem.startswith("findings.jsonl")


def test_files_of_episodes_may_be_called_anything(run: Path, store: Store) -> None:
    for stem in ("findings", "tasks"):
        write_episodes(run / "episodes" / f"{stem}.jsonl", [episode(f"{stem}#0")])
    (run / "findings.jsonl").write_bytes(lines(("tasks#0", READ), file="tasks"))
    (run / "tasks.jsonl").write_text('{"id": "tasks"}\n')
    store.refresh()
    assert sorted(names(store)) == ["findings#0", "tasks#0"] and names(store, severity="note") == ["tasks#0"]


FINDINGS = st.builds(
    Finding, st.sampled_from(LAYERS), st.sampled_from(("x", "y")), st.sampled_from(SEVERITIES), st.just(1), st.just("")
)  # fmt: skip


@settings(max_examples=10)  # each makes files and an index
@given(st.lists(st.lists(FINDINGS, max_size=3), min_size=1, max_size=5))
def test_filters_are_about_one_finding(tmp_path_factory: pytest.TempPathFactory, found: list[list[Finding]]) -> None:
    folder = tmp_path_factory.mktemp("found")
    (folder / "episodes").mkdir()
    known = {f"e#{n}": own for n, own in enumerate(found)}
    write_episodes(folder / "episodes" / "eval.jsonl", [episode(name) for name in known])
    write_findings(folder / "findings.jsonl", [({"file": "eval", "episode": n}, own) for n, own in known.items()])
    store = Store(folder, folder / "index.sqlite")
    store.refresh()
    for severity in ("", "note", "violation", "catastrophic"):
        for layer in ("", "policy", "safety"):
            for rule in ("", "x"):
                if not severity and not layer and not rule:
                    continue
                least = SEVERITIES.index(severity or "note")  # type: ignore[arg-type]
                wanted = [
                    name
                    for name, own in known.items()
                    if any(
                        SEVERITIES.index(f.severity) >= least and layer in ("", f.layer) and rule in ("", f.rule)
                        for f in own
                    )
                ]
                assert names(store, severity=severity, layer=layer, rule=rule) == wanted
    weight = {n: [sum(f.severity == s for f in own) for s in ("catastrophic", "violation")] for n, own in known.items()}
    order = names(store, sort="worst findings")
    assert [weight[n] for n in order] == sorted(weight.values(), reverse=True)
    with store.reading() as db:  # and neighbours follow it
        rows = queries.episodes(db, Filter(sort="worst findings"), size=9)
        keys = [None, *(e.key for e in rows), None]
        for n, row in enumerate(rows):
            assert queries.neighbours(db, Filter(sort="worst findings"), row) == (keys[n], keys[n + 2])
