"""What muarl computes and prints, as digests: equal before and after a change that is to change nothing.

    python benches/same.py --source . --out before.json
    ... move, rename, rewrite ...
    python benches/same.py --source . --against before.json        # prints what differs; exit code 1 if anything does
    python benches/same.py --source . --only tasks surface --keep /tmp/same --against before.json

Everything goes by the command line, so that modules may move: conversations sampled in short trainings of several
environments, tasks of every made environment, replayed and scored corpora of the originals (with ``--data``, the folder
of the benchmarks' data and its ``oracle``), pages, exports, checks and plans on runs of its own, help texts, presets.
``--keep`` leaves the files, to see how they differ. ``--old-run``: a run folder of another version, which must resume.

Seconds, dates, processes, versions and paths are left out of what is compared.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PARTS = ("surface", "tasks", "talks", "samples", "exactness", "tools", "resume")
COMMAND = """
try:
    from muarl.cli.main import main
except ImportError:  # as it was before the packages
    from muarl.cli import main
main()
"""
VOLATILE = {
    "seconds", "timings", "began", "at", "pid", "host", "process", "versions", "created", "wall", "cpu", "timestamp",
    "date", "commit", "elapsed", "library_version", "muarl", "peak_memory_bytes", "budget",
}  # fmt: skip
CLOCKS = ("time/", "seconds", "per_second")
"""Fields of JSON that differ from run to run, and what is in the names of others that do."""
CLOCK = re.compile(
    r"\d+(\.\d+)?(e-?\d+)? (ms|s|seconds|minutes|hours|CPU seconds)\b|\b\d+(\.\d+)? s/\w+|\d+:\d\d(:\d\d)?|"
    r"[\d,.]+ (steps|episodes|conversations|dialogues)/s|20\d\d-\d\d-\d\d[T ]?[\d:.+Z]*|\b(\d+m )?\d+s\b|"
    r"at most [\d.]+ GiB of memory|Peak memory</th><td class=\"n\">[\d.]+ GiB|<(\w+) [\w.]+ at 0x[0-9a-f]+>"
)
TIME_ROW = re.compile(r"<div><dt>Time</dt><dd>[^<]*</dd></div>")
"""Of an episode's page; it is there from a second on."""
SMALL = ("rl.tasks_per_step=4", "rl.group_size=4", "rl.steps=3", "rl.eval_every=0", "eval.tasks=8", "rl.warmup=0")
TRAINED = {
    "retail": ("cpu", ()),
    "mixture": ("cpu", ("-d", "retail-generated", "-d", "hotel-generated", "model.checkpoint=base-worlds")),
    "telecom": ("telecom", ()),
    "bfcl": ("cpu", ("-d", "bfcl-generated", "model.checkpoint=base-worlds")),
    "knowledge": ("cpu", ("-d", "bank-knowledge-generated", "model.checkpoint=base-worlds", "model.max_context=2048")),
    "two-processes": ("cpu", ("engine.processes=2",)),
}
"""Short trainings: the preset, and what is set besides."""


@dataclass(frozen=True)
class Check:
    """One command. ``name``: of its digests. ``command``: its words. ``files``: what it writes that is compared, as
    patterns below its folder. ``code``: the exit code that is expected; None: any, and it is compared."""

    name: str
    command: tuple[str, ...]
    files: tuple[str, ...] = ()
    output: bool = True
    code: int | None = 0


class Same:
    """Runs commands of one source tree, each in a folder of its own below ``scratch``."""

    def __init__(self, source: Path, scratch: Path, data: Path | None, old_run: Path | None, jobs: int) -> None:
        self.source, self.scratch, self.data, self.jobs = source.resolve(), scratch.resolve(), data, jobs
        self.old_run = old_run
        self.digests: dict[str, str] = {}
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("MUARL_")},
            "PYTHONPATH": str(self.source / "src"), "PYTHONHASHSEED": "0", "OMP_WAIT_POLICY": "PASSIVE",
            "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "COLUMNS": "120", "NO_COLOR": "1",
            "TERM": "dumb", "HF_HUB_OFFLINE": "1", "MUARL_DATA": str(self.scratch / "installed"),
        }  # fmt: skip

    def muarl(self, *words: str, folder: Path) -> tuple[int, str]:
        """A command's exit code, and what it printed."""
        folder.mkdir(parents=True, exist_ok=True)
        call = [sys.executable, "-W", "ignore", "-c", COMMAND, *words]
        done = subprocess.run(
            call, cwd=folder, env=self.environment, capture_output=True, text=True, errors="replace", check=False
        )
        (folder / "stderr.txt").write_text(done.stderr)
        (folder / "stdout.txt").write_text(done.stdout)
        return done.returncode, done.stdout

    def check(self, one: Check, folder: Path | None = None) -> None:
        """Run a command, and note the digests of what it gives."""
        where = folder or self.scratch / "checks" / one.name.replace("/", "-").replace(" ", "_")
        code, output = self.muarl(*one.command, folder=where)
        if one.code is not None and code != one.code:
            tail = (where / "stderr.txt").read_text()[-600:]
            self.digests[one.name] = f"exit code {code}"
            print(f"{one.name}: exit code {code} of `muarl {' '.join(one.command)}`\n{tail}", file=sys.stderr)
            return
        if one.output:
            self.note(one.name, f"{code}\n{self.plain(output)}")
        for file in sorted({f for pattern in one.files for f in where.glob(pattern) if f.is_file()}):
            self.note(f"{one.name}: {file.relative_to(where)}", self.content(file))

    def checks(self, some: Iterable[Check]) -> None:
        """Run several, some at a time."""
        with ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(self.check, some))

    def note(self, name: str, content: str) -> None:
        """Keep the digest of some content."""
        self.digests[name] = hashlib.sha256(content.encode(errors="surrogatepass")).hexdigest()[:20]

    def content(self, file: Path) -> str:
        """A file's content without what differs from run to run."""
        if file.suffix == ".safetensors":
            return hashlib.sha256(file.read_bytes()).hexdigest()
        text = file.read_text(errors="surrogateescape")
        if file.suffix == ".csv" or file.name == "out-csv":
            return self.plain("\n".join(json.dumps(without(row)) for row in csv.DictReader(io.StringIO(text))))
        if file.suffix == ".json":
            return self.plain(json.dumps(without(json.loads(text)), sort_keys=True))
        if file.suffix == ".jsonl":
            rows = (json.dumps(without(json.loads(line)), sort_keys=True) for line in text.splitlines())
            return self.plain("\n".join(sorted(rows) if "episodes" in file.parts else rows))
        return self.plain(text)

    def plain(self, text: str) -> str:
        """Text without paths of this machine, and without clocks."""
        for path, name in ((self.scratch, "SCRATCH"), (self.source, "SOURCE"), (Path.home(), "HOME")):
            text = text.replace(str(path), name)
        return CLOCK.sub("CLOCK", TIME_ROW.sub("", text))


def without(value: Any) -> Any:
    """JSON without the fields that differ from run to run."""
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if k not in VOLATILE and not any(part in k for part in CLOCKS)}
        return {k: without(v) for k, v in kept.items()}
    if isinstance(value, list):
        return [without(v) for v in value]
    return value


# ---- the parts


def surface(same: Same) -> None:
    """Help of every command, presets, what a dry run says of each, and the names of the package."""
    names = same.scratch / "names"
    names.mkdir(parents=True, exist_ok=True)
    script = (
        "import inspect, muarl\n"
        "for name in sorted(muarl.__all__):\n"
        "    thing = getattr(muarl, name)\n"
        "    try: print(name, inspect.signature(thing))\n"
        "    except (TypeError, ValueError): print(name)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=same.environment, capture_output=True, text=True, check=False
    )
    same.note("surface/names", re.sub(r"muarl[\w.]*\.(\w+)", r"\1", done.stdout) or f"failed: {done.stderr[-300:]}")
    helps = [("--help",), *((*words, "--help") for words in commands(same))]
    same.checks(Check(f"surface/{' '.join(words)}", words) for words in helps)
    _, listed = same.muarl("presets", folder=same.scratch / "presets")
    same.note("surface/presets", same.plain(listed))
    found = sorted(p.stem for p in same.source.glob("src/*/presets/*.yaml"))
    same.checks(Check(f"surface/plan {name}", ("plan", name, "--json"), code=None) for name in found)


def commands(same: Same) -> Iterator[tuple[str, ...]]:
    """The words of every command, groups' own among them."""

    def below(words: tuple[str, ...]) -> list[str]:
        _, text = same.muarl(*words, "--help", folder=same.scratch / "help" / "-".join(("muarl", *words)))
        if "COMMAND [ARGS]" not in text:
            return []
        return re.findall(r"^│ ([a-z][a-z-]+) ", text, re.MULTILINE)

    for name in below(()):
        yield (name,)
        for sub in below((name,)):
            yield (name, sub)


def made(same: Same) -> list[str]:
    """The environments whose tasks are made."""
    _, text = same.muarl("domains", "list", folder=same.scratch / "domains")
    return sorted(line.split()[0] for line in text.splitlines() if "train, validation, test" in line)


def tasks(same: Same) -> None:
    """Tasks of every made environment: 60 of each split, of the smallest size and of another."""
    wanted = []
    for name in made(same):
        for split in ("train", "validation", "test"):
            words = ("generate", name, "--split", split, "--count", "60", "--show", "1", "--out", "tasks.jsonl")
            wanted.append(Check(f"tasks/{name} {split}", words, ("tasks.jsonl",)))
        words = ("generate", name, "--size", "official", "--count", "20", "--show", "0", "--out", "tasks.jsonl")
        wanted.append(Check(f"tasks/{name} official", words, ("tasks.jsonl",), code=None))
    same.checks(wanted)


def talks(same: Same) -> None:
    """Conversations of experts with users by rules, of three levels of difficulty; red teams."""
    files = ("runs/e/episodes/*.jsonl", "runs/e/summary.json", "runs/e/report.md", "runs/e/findings.jsonl")
    wanted = []
    for name in made(same):
        expert = ("eval", name, "eval.agent=expert", "--name", "e")
        wanted.append(Check(f"talks/{name}", (*expert, "eval.tasks=20"), files, output=False, code=None))
        for level in ("typical", "hard"):
            words = (*expert, "eval.tasks=8", f"eval_user.traits={level}")
            wanted.append(Check(f"talks/{name} {level}", words, files[:1], output=False, code=None))
        words = (*expert, "eval.red_team=true", "eval.tasks=8")
        wanted.append(Check(f"talks/{name} red team", words, files[:2], output=False, code=None))
    same.checks(wanted)


def samples(same: Same) -> None:
    """Ids sampled in three steps of RL, figures and weights, and an evaluation of what they led to."""
    for name, (preset, more) in TRAINED.items():
        folder = same.scratch / "trained" / name
        files = ("runs/t/episodes/*.jsonl", "runs/t/metrics.jsonl", "runs/t/checkpoints/rl/*/*.safetensors")
        words = ("train", "--config", preset, "--name", "t", *more, *SMALL)
        same.check(Check(f"samples/{name}", words, files, output=False), folder)
        words = ("eval", *(w for w in more if "=" not in w), "-m", "runs/t", "--name", "e", "eval.tasks=12")
        same.check(Check(f"samples/{name} evaluated", words, ("runs/e/episodes/*.jsonl",), output=False), folder)


def exactness(same: Same) -> None:
    """What replaying and scoring the originals' corpora gives."""
    if same.data is None:
        print("exactness: left out, since --data names no folder", file=sys.stderr)
        return
    for name in ("tau1", "tau2", "bfcl", "acebench"):
        same.muarl("data", "add", name, "--from", str(same.data / name), folder=same.scratch / "data")
    oracle, lines = same.data / "oracle", same.scratch / "lines"
    lines.mkdir(parents=True, exist_ok=True)
    talks = [json.loads(line) for line in (oracle / "tau2_gold_trajectories.jsonl").read_text().splitlines()]
    write(
        lines / "tau2.jsonl",
        ({"domain": t["domain"], "task_id": t["id"], "messages": t["messages"], "termination_reason": "user_stop"}
         for t in talks),
    )  # fmt: skip
    write(lines / "tau2-calls.jsonl", map(calls_of, talks))
    wanted = [
        through("score", "tau2", lines / "tau2.jsonl", "--details"),
        through("replay", "tau2", lines / "tau2-calls.jsonl"),
    ]  # fmt: skip
    for revision in ("v3", "v4"):
        with lzma.open(oracle / f"bfcl_{revision}_mutants.jsonl.xz", "rt", encoding="utf-8") as file:
            write(lines / f"bfcl-{revision}.jsonl", ({k: r[k] for k in ("id", "calls")} for r in map(json.loads, file)))
        words = (
            "score",
            f"bfcl-{revision}",
            "--trajectories",
            str(lines / f"bfcl-{revision}.jsonl"),
            "--out",
            "o.jsonl",
        )
        wanted.append(Check(f"exactness/score bfcl-{revision}", words, ("o.jsonl",)))
    results = [
        {"id": row["id"], "language": row["lang"], **alternative["result"]}
        for row in map(json.loads, (oracle / "acebench_gold.jsonl").read_text().splitlines())
        for alternative in row["alts"]
    ]
    write(lines / "ace.jsonl", ({"id": r["id"], "language": r["language"], "final_state": r["result"],
                                 "process": r["process"]} for r in results))  # fmt: skip
    write(lines / "ace-steps.jsonl", ({"id": r["id"], "language": r["language"],
                                       "steps": [{"message": m} for m in r["process"]]} for r in results))  # fmt: skip
    wanted += [
        through("score", "acebench", lines / "ace.jsonl"),
        through("replay", "acebench", lines / "ace-steps.jsonl"),
    ]
    for name in ("tau2-retail", "tau2-airline", "tau2-telecom", "tau2-mock", "tau1-retail"):
        wanted.append(Check(f"exactness/check {name}", ("tasks", "check", name, "--tasks", "30", "--json"), code=None))
    same.checks(wanted)


def through(command: str, benchmark: str, lines: Path, *more: str) -> Check:
    """``muarl replay`` or ``muarl score`` of a corpus."""
    option = {"score": "--trajectories", "replay": "--calls"}[command]
    words = (command, benchmark, option, str(lines), "--out", "o.jsonl", *more)
    return Check(f"exactness/{command} {benchmark}", words, ("o.jsonl",))


def calls_of(talk: dict[str, Any]) -> dict[str, Any]:
    """A conversation's calls, as ``muarl replay`` reads them."""
    calls = [
        {"requestor": call.get("requestor", message["role"]), "name": call["name"], "arguments": call["arguments"]}
        for message in talk["messages"]
        for call in message.get("tool_calls") or ()
    ]
    return {"domain": talk["domain"], "task_id": talk["id"], "calls": calls}


def write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def tools(same: Same) -> None:
    """Pages, exports, audits, comparisons and checks on a short quickstart and an evaluation of its cold start."""
    folder = same.scratch / "tools"
    brief = ("rl.steps=2", "sft.steps=4", "sft.demonstrations=64", "eval.tasks=20", *SMALL[:2])
    same.check(Check("tools/quickstart", ("quickstart", "--name", "q", *brief), (
        "runs/q/summary.json", "runs/q/report.*", "runs/q/episodes/*.jsonl", "runs/q/tasks.jsonl",
    ), output=False), folder)  # fmt: skip
    same.check(Check("tools/eval", ("eval", "-m", "base", "--name", "e", "eval.tasks=20"), output=False), folder)
    for one in (
        Check("tools/report", ("report", "runs/q"), ("runs/q/report.html",)),
        Check("tools/runs", ("runs",)),
        Check("tools/view", ("view", "runs/q", "--export", "pages"), ("pages/**/*.html", "pages/**/*.json")),
        Check("tools/audit", ("audit", "runs/q", "--out", "audited"), ("audited/*",)),
        Check("tools/compare", ("compare", "runs/q", "runs/e", "--json", "--page", "compare.html"), ("compare.html",)),
        Check("tools/user check", ("user", "check", "agenda", "--tasks", "4", "--json")),
        *(
            Check(f"tools/export {form}", ("export", "runs/q", "--as", form, "--out", f"out-{form}"), (f"out-{form}*",))
            for form in ("messages", "rows", "csv", "atif", "tau2")
        ),
        *(
            Check(f"tools/{' '.join(words)}", (*words, name, *more), code=None)
            for name in ("retail-generated", "hotel-generated")
            for words, more in ((("tasks", "check"), ("--tasks", "40", "--json")), (("domains", "check"), ("-n", "40")))
        ),
    ):
        same.check(one, folder)


def resume(same: Same) -> None:
    """A run that was stopped after two of its steps goes on; ``--old-run`` does, too."""
    folder = same.scratch / "resumed"
    words = ("train", "--config", "cpu", "--name", "r", *SMALL, "rl.checkpoint_every=1", "rl.steps=2")
    same.check(Check("resume/first", words, output=False), folder)
    same.check(Check("resume/second", ("train", "--resume", "runs/r", "rl.steps=3"),
                     ("runs/r/episodes/*.jsonl", "runs/r/metrics.jsonl"), output=False), folder)  # fmt: skip
    if same.old_run is not None:
        shutil.copytree(same.old_run, same.scratch / "old" / "r", dirs_exist_ok=True)
        same.check(Check("resume/old", ("train", "--resume", "r", "rl.steps=3"),
                         ("r/episodes/*.jsonl",), output=False), same.scratch / "old")  # fmt: skip


WORK: dict[str, Callable[[Same], None]] = {
    "surface": surface, "tasks": tasks, "talks": talks, "samples": samples, "exactness": exactness, "tools": tools,
    "resume": resume,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, default=Path(), help="the tree whose src/ is run")
    parser.add_argument("--data", type=Path, help="the benchmarks' data, with the originals' records in oracle/")
    parser.add_argument("--old-run", type=Path, help="a training's folder that another version wrote: it must resume")
    parser.add_argument("--only", nargs="*", choices=PARTS, default=PARTS)
    parser.add_argument("--out", type=Path, help="write the digests here")
    parser.add_argument("--against", type=Path, help="digests to compare with")
    parser.add_argument("--keep", type=Path, help="work in this folder, and leave it")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2)))
    arguments = parser.parse_args()
    scratch = arguments.keep or Path(tempfile.mkdtemp(prefix="same-"))
    same = Same(
        arguments.source, scratch, arguments.data and arguments.data.resolve(), arguments.old_run, arguments.jobs
    )
    for part in arguments.only:
        before = len(same.digests)
        WORK[part](same)
        print(f"{part}: {len(same.digests) - before} digests", flush=True)
    if arguments.out:
        arguments.out.write_text(json.dumps(dict(sorted(same.digests.items())), indent=1) + "\n")
    if not arguments.keep:
        shutil.rmtree(scratch, ignore_errors=True)
    if arguments.against:
        raise SystemExit(differences(same.digests, json.loads(arguments.against.read_text()), arguments.only))


def differences(now: dict[str, str], then: dict[str, str], parts: Iterable[str]) -> int:
    """Print what differs, of these parts; the exit code."""
    then = {name: digest for name, digest in then.items() if name.split("/")[0] in set(parts)}
    changed = [name for name in then if name in now and now[name] != then[name]]
    for title, names in (
        ("changed", changed), ("gone", [n for n in then if n not in now]), ("new", [n for n in now if n not in then])
    ):  # fmt: skip
        for name in names:
            print(f"{title}: {name}")
    print(f"{len(changed)} of {len(then)} changed")
    return int(now != then)


if __name__ == "__main__":
    main()
