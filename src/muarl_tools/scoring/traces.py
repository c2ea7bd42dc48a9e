"""BFCL's and ACEBench's recorded traces: ``muarl replay`` and ``muarl score`` of lines of calls, not messages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from muarl.records.rows import PlacedRow, json_lines

BENCHMARKS = ("bfcl-v3", "bfcl-v4", "acebench")

Line = dict[str, Any]
Read = Callable[[Mapping[str, Any], str], Line]


def replay_lines(bench: str, path: Path) -> list[Line]:
    """Every line's calls run in a world of its own, with what the tools answer and the state they leave."""
    return list(_each(_reader(bench, "replay_row"), json_lines(path)))


def score_lines(bench: str, path: Path) -> tuple[list[Line], str]:
    """The verdict on every line, and the headline figures in a sentence.

    The lines are recorded calls, or what upstream's result files hold (such a file, or a folder of them).
    """
    from muarl_worlds.acebench import official as acebench
    from muarl_worlds.bfcl import official as bfcl

    results = path.is_dir() or path.name.endswith("_result.json")
    if bench != "acebench":
        found = bfcl.read_results(path) if results else json_lines(path)
        lines = list(_each(_reader(bench, "score_row"), found))
        return lines, _bfcl_report(lines)
    if results:
        read = acebench.read_results([path])
        lost = f"; {len(read.missing)} tasks have no line" if read.missing else ""
        return list(read.rows), f"{len(read.rows)} entries: {_figures(read.figures)}{lost}"
    lines = list(_each(_reader(bench, "score_row"), json_lines(path)))
    languages = sorted({str(line["language"]) for line in lines})
    shown = [f"{name}: {_figures(_ace_figures([x for x in lines if x['language'] == name]))}" for name in languages]
    return lines, "; ".join([f"{len(lines)} entries", *shown])


def _each(read: Read, lines: Iterable[PlacedRow]) -> Iterator[Line]:
    for row in lines:
        yield read(row.value, row.place)


def _reader(bench: str, name: str) -> Read:
    from muarl_worlds.acebench import official as acebench
    from muarl_worlds.bfcl import official as bfcl

    if bench == "acebench":
        return acebench.replay_row if name == "replay_row" else acebench.score_row
    revision: Any = bench.removeprefix("bfcl-")
    function = bfcl.replay_row if name == "replay_row" else bfcl.score_row
    return partial(function, revision=revision)


def replay_report(lines: Sequence[Line]) -> str:
    """How many lines and calls there were."""
    kind = "calls" if any("calls" in line for line in lines) else "steps"
    return f"{len(lines)} lines, {sum(len(line[kind]) for line in lines)} {kind}"


def _bfcl_report(lines: Sequence[Line]) -> str:
    kinds: dict[str, dict[str, list[bool]]] = {"valid": defaultdict(list), "strict": defaultdict(list)}
    for line in lines:
        for score, found in kinds.items():
            found[str(line["id"]).rpartition("_")[0].removeprefix("multi_turn_")].append(bool(line[score]))
    parts = [f"{len(lines)} entries"]
    for score, found in kinds.items():
        shares = {name: sum(values) / len(values) for name, values in found.items()}
        if len(shares) == 4:
            shares["overall"] = sum(shares.values()) / 4
        parts.append(f"{'official' if score == 'valid' else 'strict'}: {_figures(shares)}")
    return "; ".join(parts)


def _ace_figures(lines: Sequence[Line]) -> dict[str, float]:
    """Upstream's figures of the lines, and the fixed ones."""
    from muarl_worlds.acebench import official as acebench

    out: dict[str, float] = {}
    for prefix in ("", "fixed_"):
        pairs: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for line in lines:
            category = "multi_step" if "multi_step" in line["id"] else "multi_turn"
            pairs[category].append((line[f"{prefix}end_to_end"], line[f"{prefix}process"]))
        out |= {prefix + name: value for name, value in acebench.figures(pairs).items()}
    return out


def _figures(found: Mapping[str, float]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in found.items())
