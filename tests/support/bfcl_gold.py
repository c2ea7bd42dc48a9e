"""BFCL's gold calls of one API class, with what the original answered and left behind."""

from __future__ import annotations

import ast
import json
import lzma
from pathlib import Path
from typing import Any

from muarl_worlds.bfcl.api import Api


def shown(value: Any) -> str:
    """A tool's result as BFCL shows it."""
    if type(value) is str:
        return value
    if type(value) is dict:
        try:
            return json.dumps(value)
        except (TypeError, ValueError):
            return str(value)
    return str(value)


def answer(api: Api, name: str, /, *args: Any, **kwargs: Any) -> str:
    """What calling a tool shows, errors included."""
    try:
        return shown(getattr(api, name)(*args, **kwargs))
    except Exception as error:
        return f"Error during execution: {error}"


def plain(value: Any) -> Any:
    """A state as the recorded ones have it."""
    if hasattr(value, "to_json"):
        return plain(value.to_json())
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return sorted(map(repr, value)) if isinstance(value, set) else value


def replayed(folder: Path, revision: str, kind: type[Api], tools: set[str]) -> tuple[int, list[Any]]:
    """Run every gold call of the class; (how many, the differences from what the original gave)."""
    entries = {e["id"]: e for e in _lines(folder / "bfcl" / revision, f"BFCL_{revision}_multi_turn_*.json")}
    gold = {e["id"]: e["ground_truth"] for e in _lines(folder / "bfcl" / revision / "possible_answer", "BFCL_*.json")}
    literals = json.loads((folder / "bfcl" / revision / "long_context.json").read_text(encoding="utf-8"))
    calls, differences = 0, []
    with lzma.open(folder / "oracle" / f"bfcl_{revision}_gold_outputs.jsonl.xz", "rt", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    for record in records:
        entry = entries[record["id"]]
        if kind.name not in entry["involved_classes"]:
            continue
        api = kind()
        if not kind.stateless:
            config = entry["initial_config"].get(kind.name, {})
            api.load(config, literals if "long_context" in record["id"] else None)
        for turn, outs in zip(gold[record["id"]], record["outs"], strict=False):
            for text, expected in zip(turn, outs, strict=True):
                call = ast.parse(text, mode="eval").body
                if call.func.id not in tools:
                    continue
                calls += 1
                args = [ast.literal_eval(a) for a in call.args]
                got = answer(api, call.func.id, *args, **{k.arg: ast.literal_eval(k.value) for k in call.keywords})
                if got != expected:
                    differences.append((record["id"], text, expected, got))
        if plain(api.state()) != record["state"].get(kind.name, {}):
            differences.append((record["id"], "state"))
    return calls, differences


def _lines(folder: Path, pattern: str) -> list[Any]:
    found = []
    for path in sorted(folder.glob(pattern)):
        with open(path, encoding="utf-8") as file:
            found += [json.loads(line) for line in file]
    return found
