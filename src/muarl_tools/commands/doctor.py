"""``muarl doctor``: is this machine ready, and how fast is it? Says what is missing and how to fix it."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from muarl.basics.extras import is_installed
from muarl.basics.system import usable_cores
from muarl.cli import options
from muarl.cli.command import HELP, Subcommand
from muarl.observe.terminal import echo, working
from muarl_tools.commands.doctor_model import DoctorCheck

CORE = ("pydantic", "aiohttp", "numpy")
MODELS = ("torch", "transformers", "tokenizers", "safetensors", "renderers")
"""Packages of the extra ``train``: for models in muarl's own processes."""
EXTRAS = {
    "peft": "LoRA adapters",
    "ray": "several machines",
    "vllm": "generation on GPUs",
    "mcp": "MCP tool servers",
    "wandb": "a metrics logger",
    "trackio": "a metrics logger",
}
ENDPOINT_VARIABLES = ("OPENAI_API_KEY", "OPENAI_BASE_URL")
SECONDS = 2.0
GIB = 1024**3


def doctor(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODEL]",
            help="Say what muarl can do with this checkpoint instead: a folder, a run, or a published model's name.",
        ),
    ] = None,
    settings: Annotated[list[str] | None, options.settings_argument("model.chat_format=text")] = None,
    as_json: options.AsJson = False,
    speed: Annotated[bool, typer.Option(help="Measure matrix multiplication for two seconds.")] = True,
) -> None:
    """Check this machine: Python, cores, memory, disk, torch, GPU, extras, data, endpoints, speed; or a model.

    Shows whether endpoint variables are set, never what they hold. Exit code 1 if muarl cannot work, 2 for a model that
    it cannot use.

      muarl doctor
      muarl doctor --json --no-speed
      muarl doctor Qwen/Qwen2.5-7B
      muarl doctor ./my-model model.chat_format=text
    """
    from muarl.basics.errors import ConfigError
    from muarl.config.load import load_config
    from muarl_tools.commands.doctor_model import check_formats, check_model

    if model is not None and "=" in model and not Path(model).exists():
        raise ConfigError(f"{model}: settings come after the model that they are for: muarl doctor MODEL {model}")
    with working("Looking at this machine" if model is None else f"Looking at {model}"):
        told = load_config("cpu", settings).model if settings else None
        found = list(checks() if model is None else check_model(model, told))
        if model is not None and speed and is_installed("torch"):
            found.append(check_formats())
        elif (
            speed
            and all(check.status != "problem" for check in found if check.name == "torch")
            and is_installed("torch")
        ):
            found += [check_speed(), check_formats()]
    if as_json:
        echo(json.dumps({"checks": [asdict(check) for check in found]}, indent=2))
    else:
        _print(found, about_machine=model is None)
    if any(check.status == "problem" for check in found):
        raise typer.Exit(1)


def checks() -> Iterator[DoctorCheck]:
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
    return out | {name: _version(name) or "not installed" for name in (*MODELS, *CORE)}


def check_python() -> DoctorCheck:
    text = f"{platform.python_version()} ({platform.system()}, {platform.machine()})"
    return DoctorCheck("python", "ok", text, data={"version": platform.python_version(), "executable": sys.executable})


def check_cores() -> DoctorCheck:
    cores = usable_cores()
    data = {"usable": cores, "present": os.cpu_count()}
    if cores < 2:
        return DoctorCheck(
            "cores", "note", f"{cores:g}", "The quickstart is meant for 2 cores; it will take longer.", data
        )
    return DoctorCheck("cores", "ok", f"{cores:g}", data=data)


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


def check_memory() -> DoctorCheck:
    total, available = memory()
    data = {"total": total, "available": available}
    text = f"{available / GIB:.1f} GiB free of {total / GIB:.1f} GiB"
    if 0 < available < 4 * GIB:
        return DoctorCheck("memory", "note", text, "The quickstart may need up to 4 GiB; close something first.", data)
    return DoctorCheck("memory", "ok", text, data=data)


def check_disk(folder: Path) -> DoctorCheck:
    free = shutil.disk_usage(folder).free
    text, data = f"{free / GIB:.1f} GiB free here", {"free": free, "folder": str(folder)}
    if free < GIB // 4:
        return DoctorCheck("disk", "problem", text, "Free some space, or set runs_dir to another disk.", data)
    if free < 2 * GIB:
        return DoctorCheck(
            "disk", "note", text, "Enough for the quickstart; checkpoints of larger models need more.", data
        )
    return DoctorCheck("disk", "ok", text, data=data)


def check_torch() -> DoctorCheck:
    if not is_installed("torch"):
        remedy = "Needed to train, and for models on this machine: pip install 'muarl[train]'"
        return DoctorCheck("torch", "note", "not installed", remedy)
    remedy = "Install PyTorch again (a CPU build is enough)."
    try:
        import torch
    except (ImportError, OSError) as problem:
        return DoctorCheck("torch", "problem", f"installed, but cannot be imported: {problem}", remedy)
    built = f"CUDA {torch.version.cuda}" if torch.version.cuda else "no CUDA"
    threads = torch.get_num_threads()
    data = {"version": torch.__version__, "cuda": torch.version.cuda, "threads": threads}
    text = f"{torch.__version__} ({built}), {threads} threads"
    if threads > max(1, usable_cores()):
        return DoctorCheck(
            "torch", "note", text, f"More threads than cores: set threads={usable_cores():g} in the config.", data
        )
    return DoctorCheck("torch", "ok", text, data=data)


def check_waiting() -> DoctorCheck:
    policy = os.environ.get("OMP_WAIT_POLICY", "")
    if policy.upper() != "PASSIVE":
        remedy = "export OMP_WAIT_POLICY=PASSIVE: waiting threads that spin slow down everything on the same cores."
        return DoctorCheck("OMP_WAIT_POLICY", "note", policy or "not set", remedy, {"value": policy})
    return DoctorCheck("OMP_WAIT_POLICY", "ok", "PASSIVE", data={"value": policy})


def check_gpu() -> DoctorCheck:
    if not is_installed("torch"):
        return DoctorCheck("GPU", "ok", "not looked for without torch", data={"devices": []})
    try:
        import torch

        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        devices = [torch.cuda.get_device_properties(i) for i in range(count)]
    except (ImportError, OSError, RuntimeError) as problem:
        return DoctorCheck("GPU", "note", f"cannot be asked: {problem}", "muarl will use the CPU.")
    if not devices:
        return DoctorCheck("GPU", "ok", "none; the CPU is used", data={"devices": []})
    text = ", ".join(f"{device.name} ({device.total_memory / GIB:.0f} GiB)" for device in devices)
    return DoctorCheck(
        "GPU", "ok", text, data={"devices": [{"name": d.name, "memory": d.total_memory} for d in devices]}
    )


def check_libraries() -> DoctorCheck:
    found = versions()
    needed = (*MODELS, *CORE) if is_installed("torch") else CORE
    missing = [name for name in needed if found[name] == "not installed"]
    if missing:
        extra = "muarl" if set(missing) <= set(CORE) else "'muarl[train]'"
        return DoctorCheck(
            "libraries", "problem", f"missing: {', '.join(missing)}", f"pip install {extra}", dict(found)
        )
    shown = ("transformers", "tokenizers", "renderers", "aiohttp", "pydantic")
    text = ", ".join(f"{name} {found[name]}" for name in shown if name in needed)
    return DoctorCheck("libraries", "ok", text, data=dict(found))


def check_extras() -> DoctorCheck:
    found = {name: _version(name) for name in EXTRAS}
    present = [f"{name} {number}" for name, number in found.items() if number]
    absent = [f"{name} ({EXTRAS[name]})" for name, number in found.items() if not number]
    text = ", ".join(present) or "none installed"
    remedy = f"Optional: pip install {' '.join(absent)}" if absent else ""
    return DoctorCheck("extras", "ok", text, remedy, dict(found))


def check_base() -> DoctorCheck:
    from muarl.config.load import PRESETS

    folder = PRESETS.parent / "assets" / "base"
    present = (folder / "model.safetensors").is_file()
    if not present:
        return DoctorCheck(
            "base checkpoint", "note", "not in this installation", "Make one: muarl base", {"present": False}
        )
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return DoctorCheck(
        "base checkpoint", "ok", f"{size / 2**20:.1f} MiB, shipped", data={"present": True, "bytes": size}
    )


def check_data() -> DoctorCheck:
    from muarl_worlds import data

    found = data.installed()
    if not found:
        return DoctorCheck(
            "data", "ok", "no benchmark data", "Optional: muarl data add tau2 --from DIR", {"installed": []}
        )
    return DoctorCheck("data", "ok", ", ".join(found), data={"installed": list(found)})


def check_endpoints() -> DoctorCheck:
    present = {name: bool(os.environ.get(name)) for name in ENDPOINT_VARIABLES}
    text = ", ".join(f"{name} {'is set' if there else 'is not set'}" for name, there in present.items())
    remedy = "" if any(present.values()) else "Only needed for users, agents and judges played by a remote model."
    return DoctorCheck("endpoints", "ok", text, remedy, dict(present))


def check_speed() -> DoctorCheck:
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
        return DoctorCheck("speed", "note", text, "More threads hardly help; are the cores busy with other jobs?", data)
    return DoctorCheck("speed", "ok", text, data=data)


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


def _print(found: list[DoctorCheck], *, about_machine: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    from muarl.observe.screen import Screen

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
    Screen().print(table)
    if not about_machine:
        return
    problems = sum(check.status == "problem" for check in found)
    if problems:
        echo(f"{problems} problem(s) to fix before muarl can run.")
    elif is_installed("torch"):
        echo("This machine is ready: muarl quickstart")
    else:
        echo("The light core is ready: muarl eval --agent expert. Nothing here can train yet.")


def version() -> None:
    """Print the versions of muarl, Python and the libraries that decide what a run computes.

    muarl version
    """
    for name, number in versions().items():
        echo(f"{name} {number}")


COMMAND = Subcommand(doctor, HELP, 24)


VERSION = Subcommand(version, HELP, 25)
