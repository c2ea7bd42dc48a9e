"""``muarl doctor``: is this machine ready, and how fast is it? Says what is missing and how to mend it."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from muarl.observe.system import usable_cores

Status = Literal["ok", "note", "problem"]

CORE = ("torch", "transformers", "tokenizers", "safetensors", "renderers", "pydantic", "openai", "numpy")
EXTRAS = {
    "peft": "LoRA adapters",
    "ray": "several machines",
    "vllm": "generation on GPUs",
    "mcp": "MCP tool servers",
    "wandb": "a metrics logger",
}
ENDPOINT_VARIABLES = ("OPENAI_API_KEY", "OPENAI_BASE_URL")
SECONDS = 2.0
GIB = 1024**3


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor's report. ``problem`` stops muarl from working; ``note`` is worth knowing.

    ``data`` holds the same facts for programs: sizes in bytes, speeds in floating-point operations a second.
    """

    name: str
    status: Status
    says: str
    remedy: str = ""
    data: dict[str, Any] = field(default_factory=dict)


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON instead of a table.")] = False,
    speed: Annotated[bool, typer.Option(help="Measure matrix multiplication for two seconds.")] = True,
) -> None:
    """Check this machine: Python, cores, memory, disk, torch, GPU, extras, data, endpoints, speed.

    Shows whether endpoint variables are set, never what they hold. Exit code 1 if muarl cannot work.

    [bold]Examples[/bold]

      muarl doctor

      muarl doctor --json --no-speed
    """
    found = [check for check in checks() if check is not None]
    if speed and all(check.status != "problem" for check in found if check.name == "torch"):
        found.append(check_speed())
    if as_json:
        typer.echo(json.dumps({"checks": [asdict(check) for check in found]}, indent=2))
    else:
        _print(found)
    if any(check.status == "problem" for check in found):
        raise typer.Exit(1)


def checks() -> Iterator[Check]:
    """Everything but the speed test."""
    yield check_python()
    yield check_cores()
    yield check_memory()
    yield check_disk(Path.cwd())
    yield check_torch()
    yield check_waiting()
    yield check_gpu()
    yield check_libraries()
    yield check_extras()
    yield check_base()
    yield check_data()
    yield check_endpoints()


def versions() -> dict[str, str]:
    """Versions of muarl, Python and the core libraries, without importing them."""
    out = {"muarl": _version("muarl") or "not installed", "python": platform.python_version()}
    return out | {name: _version(name) or "not installed" for name in CORE}


def check_python() -> Check:
    text = f"{platform.python_version()} ({platform.system()}, {platform.machine()})"
    return Check("python", "ok", text, data={"version": platform.python_version(), "executable": sys.executable})


def check_cores() -> Check:
    cores = usable_cores()
    data = {"usable": cores, "present": os.cpu_count()}
    if cores < 2:
        return Check("cores", "note", f"{cores:g}", "The quickstart is meant for 2 cores; it will take longer.", data)
    return Check("cores", "ok", f"{cores:g}", data=data)


def memory() -> tuple[int, int]:
    """Bytes of memory this process may have in all, and bytes free now; 0 where the system does not say."""
    total = available = 0
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        available = total
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                available = int(line.split()[1]) * 1024
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        if limit != "max" and int(limit) < total:
            used = int(Path("/sys/fs/cgroup/memory.current").read_text())
            total, available = int(limit), min(available, int(limit) - used)
    except (OSError, ValueError):
        pass  # what is known so far is still true
    return total, available


def check_memory() -> Check:
    total, available = memory()
    data = {"total": total, "available": available}
    text = f"{available / GIB:.1f} GiB free of {total / GIB:.1f} GiB"
    if 0 < available < 4 * GIB:
        return Check("memory", "note", text, "The quickstart may need up to 4 GiB; close something first.", data)
    return Check("memory", "ok", text, data=data)


def check_disk(folder: Path) -> Check:
    free = shutil.disk_usage(folder).free
    text, data = f"{free / GIB:.1f} GiB free here", {"free": free, "folder": str(folder)}
    if free < GIB // 4:
        return Check("disk", "problem", text, "Free some space, or set runs_dir to another disk.", data)
    if free < 2 * GIB:
        return Check("disk", "note", text, "Enough for the quickstart; checkpoints of larger models need more.", data)
    return Check("disk", "ok", text, data=data)


def check_torch() -> Check:
    remedy = "Install PyTorch (a CPU build is enough), then muarl."
    if importlib.util.find_spec("torch") is None:
        return Check("torch", "problem", "not installed", remedy)
    try:
        import torch
    except (ImportError, OSError) as problem:
        return Check("torch", "problem", f"installed, but cannot be imported: {problem}", remedy)
    built = f"CUDA {torch.version.cuda}" if torch.version.cuda else "no CUDA"
    threads = torch.get_num_threads()
    data = {"version": torch.__version__, "cuda": torch.version.cuda, "threads": threads}
    text = f"{torch.__version__} ({built}), {threads} threads"
    if threads > max(1, usable_cores()):
        return Check(
            "torch", "note", text, f"More threads than cores: set threads={usable_cores():g} in the config.", data
        )
    return Check("torch", "ok", text, data=data)


def check_waiting() -> Check:
    policy = os.environ.get("OMP_WAIT_POLICY", "")
    if policy.upper() != "PASSIVE":
        remedy = "export OMP_WAIT_POLICY=PASSIVE: waiting threads that spin slow down everything on the same cores."
        return Check("OMP_WAIT_POLICY", "note", policy or "not set", remedy, {"value": policy})
    return Check("OMP_WAIT_POLICY", "ok", "PASSIVE", data={"value": policy})


def check_gpu() -> Check:
    try:
        import torch

        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        devices = [torch.cuda.get_device_properties(i) for i in range(count)]
    except (ImportError, OSError, RuntimeError) as problem:
        return Check("GPU", "note", f"cannot be asked: {problem}", "muarl will use the CPU.")
    if not devices:
        return Check("GPU", "ok", "none; the CPU is used", data={"devices": []})
    text = ", ".join(f"{device.name} ({device.total_memory / GIB:.0f} GiB)" for device in devices)
    return Check("GPU", "ok", text, data={"devices": [{"name": d.name, "memory": d.total_memory} for d in devices]})


def check_libraries() -> Check:
    found = versions()
    missing = [name for name in CORE if found[name] == "not installed"]
    if missing:
        return Check("libraries", "problem", f"missing: {', '.join(missing)}", "pip install muarl", dict(found))
    text = ", ".join(f"{name} {found[name]}" for name in ("transformers", "tokenizers", "renderers", "openai"))
    return Check("libraries", "ok", text, data=dict(found))


def check_extras() -> Check:
    found = {name: _version(name) for name in EXTRAS}
    present = [f"{name} {number}" for name, number in found.items() if number]
    absent = [f"{name} ({EXTRAS[name]})" for name, number in found.items() if not number]
    text = ", ".join(present) or "none installed"
    remedy = f"Optional: pip install {' '.join(absent)}" if absent else ""
    return Check("extras", "ok", text, remedy, dict(found))


def check_base() -> Check:
    from muarl.config import PRESETS

    folder = PRESETS.parent / "assets" / "base"
    present = (folder / "model.safetensors").is_file()
    if not present:
        return Check("base checkpoint", "note", "not in this installation", "Make one: muarl base", {"present": False})
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return Check("base checkpoint", "ok", f"{size / 2**20:.1f} MiB, shipped", data={"present": True, "bytes": size})


def check_data() -> Check:
    from muarl import data

    found = data.installed()
    if not found:
        return Check("data", "ok", "no benchmark data", "Optional: muarl data add tau2 --from DIR", {"installed": []})
    return Check("data", "ok", ", ".join(found), data={"installed": list(found)})


def check_endpoints() -> Check:
    present = {name: bool(os.environ.get(name)) for name in ENDPOINT_VARIABLES}
    text = ", ".join(f"{name} {'is set' if there else 'is not set'}" for name, there in present.items())
    remedy = "" if any(present.values()) else "Only needed for users, agents and judges played by a remote model."
    return Check("endpoints", "ok", text, remedy, dict(present))


def check_speed() -> Check:
    """Float32 matrix products of the width that small models have: one thread, then all of them."""
    import torch

    threads = torch.get_num_threads()
    rates = {}
    for count in sorted({1, threads}):
        torch.set_num_threads(count)
        rates[count] = _multiply(torch, SECONDS / len({1, threads}))
    torch.set_num_threads(threads)
    text = ", ".join(f"{rate / 1e9:.0f} GFLOP/s on {count} thread{'s' * (count > 1)}" for count, rate in rates.items())
    data = {"flops": {str(count): rate for count, rate in rates.items()}}
    if threads > 1 and rates[threads] < 1.3 * rates[1]:
        return Check("speed", "note", text, "More threads hardly help; are the cores busy with other jobs?", data)
    return Check("speed", "ok", text, data=data)


def _multiply(torch: Any, seconds: float, size: int = 512) -> float:
    """Floating-point operations a second of square matrix products over about that long."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    out = a @ b
    start, products = time.perf_counter(), 0
    while (passed := time.perf_counter() - start) < seconds:
        torch.matmul(a, b, out=out)
        products += 1
    return 2.0 * size**3 * products / passed


def _version(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _print(found: list[Check]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    marks = {"ok": ("ok", "green"), "note": ("note", "yellow"), "problem": ("problem", "bold red")}
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in found:
        mark, style = marks[check.status]
        says = Text(check.says)
        if check.remedy:
            says.append(f"\n{check.remedy}", style="dim" if check.status == "ok" else style)
        table.add_row(Text(mark, style=style), check.name, says)
    Console().print(table)
    problems = sum(check.status == "problem" for check in found)
    typer.echo(
        "This machine is ready: muarl quickstart"
        if not problems
        else f"{problems} problem(s) to fix before muarl can run."
    )
