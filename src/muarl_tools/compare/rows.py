"""JSON lines with an attempt each, as ``muarl score`` and anybody's script write them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from muarl.accounts.metrics import SUCCESS_WITHOUT_VIOLATION, is_success
from muarl.basics.errors import DataError
from muarl.basics.untrusted import LINE_BYTES
from muarl.records.rows import LineRules, json_lines
from muarl_tools.compare.attempts import Excluded, PlayedTask, Results, no_reward, numbered

ATTEMPTS = LineRules(most=LINE_BYTES, errors="surrogatepass")


@dataclass(frozen=True)
class _Row:
    """What a line says. ``good``: None where the attempt may not be counted, for the reason ``why``. ``verdict``: what
    stands in that column, None if nothing. ``contradicts``: whether its success and its reward differ."""

    place: str
    task: str
    domain: str | None
    trial: int | None
    seed: int | None
    good: bool | None
    why: str
    clean: bool | None
    verdict: Any
    contradicts: bool

    def attempt(self, trial: int) -> PlayedTask | Excluded:
        """What is counted, under that number."""
        if self.good is None:
            return Excluded(self.task, trial, self.why, self.seed)
        return PlayedTask(self.task, trial, self.good, self.seed, clean=self.clean)


def read_rows(path: Path) -> Results:
    """A file whose lines have ``task_id`` (or ``id``) and ``success``, ``valid`` or ``reward``, and may have ``trial``,
    ``seed``, ``domain``, ``agent``, ``user``, ``judge``, ``excluded``, ``error`` and ``success_without_violation``
    (true, false; null or absent: not checked). A null reward is an attempt that
    could not be scored. Of lines with ``verdict`` as ``muarl score --verdicts`` numbers them, the first of each
    conversation is its score. DataError names line and field."""
    rows, told = list[_Row](), dict[str, dict[str, None]]()
    for line in json_lines(path, ATTEMPTS):
        rows.append(_row(line.value, line.place))
        for name in ("domain", "agent", "user", "judge"):
            if isinstance(value := line.value.get(name), str):
                told.setdefault(name, {})[value] = None
    if len(told.get("domain", ())) > 1:  # tasks of two domains may have the same name
        rows = [row if row.domain is None else replace(row, task=f"{row.domain}:{row.task}") for row in rows]
    kept = _scores(rows)
    trials = numbered([(row.task, row.trial) for row in kept], str(path))
    further = len(rows) - len(kept)
    sources = {name: ", ".join(values) for name, values in told.items()}
    return Results.of(
        (row.attempt(trial) for row, trial in zip(kept, trials, strict=True)),
        name=path.stem,
        path=str(path),
        kind="rows",
        domain=sources.get("domain"),
        agent=sources.get("agent"),
        user=sources.get("user"),
        judge=sources.get("judge"),
        notes=tuple(_notes(kept)),
        left_out=(f"{further} lines are further verdicts on conversations that count once, by the first",)
        if further
        else (),
    )


def _row(row: Mapping[str, Any], place: str) -> _Row:
    task = row.get("task_id", row.get("id"))
    if type(task) not in (str, int):
        raise DataError(f"{place}: it lacks the field task_id (a text or a number)")
    good, why = _outcome(row, place)
    numbers = {name: row.get(name) for name in ("trial", "seed")}
    for name, value in numbers.items():
        if value is not None and type(value) is not int:
            raise DataError(f"{place}: {name} must be a whole number, not {value!r}")
    clean = row.get(SUCCESS_WITHOUT_VIOLATION)
    if clean is not None and not isinstance(clean, bool):
        raise DataError(f"{place}: {SUCCESS_WITHOUT_VIOLATION} must be true, false or null, not {clean!r}")
    domain, reward = row.get("domain"), row.get("reward")
    plain = isinstance(reward, (int, float)) and 0 <= reward <= 1
    return _Row(
        place,
        str(task),
        domain if isinstance(domain, str) else None,
        numbers["trial"],
        numbers["seed"],
        good,
        why,
        clean,
        row.get("verdict"),
        plain and good is not None and good is not is_success(float(reward or 0)),
    )


def _scores(rows: Sequence[_Row]) -> list[_Row]:
    """Without further verdicts on the same conversations: the column is ``muarl score --verdicts``' own if it holds
    whole numbers, and each above 0 belongs to a 0. Anybody's column of that name with no number in it is let be.
    DataError if it is neither."""
    if not any(type(row.verdict) is int for row in rows):
        return list(rows)
    remedy = (
        "muarl score --verdicts numbers the verdicts on each conversation 0, 1, 2, ... in this column. If it is "
        "something else here, call it something else"
    )
    counts: Counter[tuple[str, int | None, int | None, int]] = Counter()
    for row in rows:
        number = 0 if row.verdict is None else row.verdict
        if type(number) is not int or number < 0:
            raise DataError(f"{row.place}: verdict is {row.verdict!r}, and a whole number on other lines: {remedy}")
        counts[row.task, row.trial, row.seed, number] += 1
    for row in rows:
        attempt = row.task, row.trial, row.seed
        if row.verdict and counts[*attempt, row.verdict] > counts[*attempt, 0]:
            raise DataError(f"{row.place}: verdict {row.verdict} is on a conversation without a verdict 0: {remedy}")
    return [row for row in rows if not row.verdict]


def _notes(rows: Sequence[_Row]) -> list[str]:
    """What is odd about rows that are counted all the same."""
    out = []
    if odd := sum(row.contradicts for row in rows):
        out.append(
            f"{odd} of {len(rows)} lines say one thing as success and another as reward: success counts (a reward is "
            "a success if it is 1)."
        )
    seeded = Counter((row.task, row.seed) for row in rows if row.trial is None and row.seed is not None)
    if again := sum(count - 1 for count in seeded.values()):
        out.append(
            f"{again} of {len(rows)} lines have task and seed of another: they count as trials, and may be copies."
        )
    return out


def _outcome(row: Mapping[str, Any], place: str) -> tuple[bool | None, str]:
    """(success, why not): success None where the attempt may not be counted."""
    if row.get("excluded"):
        return None, str(row.get("error") or "excluded")
    name = next((n for n in ("success", "valid", "reward") if n in row), None)
    if name is None:
        raise DataError(f"{place}: it lacks the field success (or valid, or reward)")
    value = row[name]
    if value is None:
        return None, str(row.get("error") or "it could not be scored")
    if isinstance(value, bool):
        return value, ""
    if isinstance(value, (int, float)):
        why = no_reward(value, f"{place}: {name}")
        return (value >= 0 and is_success(float(value)), "") if why is None else (None, why)
    raise DataError(f"{place}: {name} must be true, false, a number or null, not {value!r}")


def verdicts_of(path: Path) -> dict[str, list[list[bool]]]:
    """All verdicts on each conversation of a file of ``muarl score --verdicts N``, by task; empty if it is none.

    Conversations that a verdict is missing of are left out.
    """
    by_task: dict[str, dict[int, list[bool | None]]] = {}
    counts: dict[tuple[str, int], int] = {}
    try:
        for row in json_lines(path, ATTEMPTS):
            number = row.value.get("verdict")
            if type(number) is not int:
                continue
            task = str(row.value.get("task_id", row.value.get("id")))
            conversation = counts.get((task, number), 0)
            counts[task, number] = conversation + 1
            good, _ = _outcome(row.value, row.place)
            by_task.setdefault(task, {}).setdefault(conversation, []).append(good)
    except DataError:
        return {}
    most = max((len(c) for own in by_task.values() for c in own.values()), default=0)
    out = {}
    for task, own in by_task.items():
        whole = [[bool(v) for v in c] for c in own.values() if len(c) == most and None not in c]
        if whole:
            out[task] = whole
    return out
