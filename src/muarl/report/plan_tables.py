"""A plan as tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from muarl.pages.table import Cell, ShownColumn, ShownTable, table, to_terminal
from muarl.planning.assumptions import GIB, Assumptions
from muarl.planning.plan import ProcessMemory, ResourcePlan

if TYPE_CHECKING:
    from rich.console import Console


def print_plan(plan: ResourcePlan, fitting: Sequence[str] | None, console: Console, *, explain: bool = True) -> None:
    """Print a plan. ``explain``: with the assumptions it stands on."""

    def say(line: str, style: str = "") -> None:
        console.print(line, style=style, markup=False)

    for line in heading(plan):
        say(line)
    for place in plan.places:
        console.print()
        console.print(to_terminal(_place(place), lines=False))
    if plan.host:
        held = ", ".join(f"{name} {_bytes(size)}" for name, size in plan.host.items())
        say(f"\nOf the machines' own memory: {held}")
    console.print()
    console.print(to_terminal(_figures(plan), lines=False))
    for note in plan.notes:
        say(f"Note: {note}")
    for problem in plan.problems:
        say(f"Does not fit: {problem}", "bold red")
    for line in remedy(fitting) if not plan.fits else ():
        say(line)
    if explain:
        say(f"\n{_assumed(plan.assumptions)}", "dim")


def heading(plan: ResourcePlan) -> list[str]:
    """The model, and the machines."""
    s = plan.shape
    mixture = "" if s.mixture is None else f", {s.active_parameters:,} of them for each token"
    model = (
        f"{s.name}: {s.parameters:,} parameters{mixture} ({s.layers} layers of width {s.width}, {s.heads} query and "
        f"{s.kv_heads} key/value heads)"
    )
    if plan.pace is None:
        several = plan.deployment.processes
        where = "One process" if several == 1 else f"One process, and {several} that play episodes (engine.processes),"
        return [model, f"{where} on this machine's CPU"]
    d, a = plan.deployment, plan.assumptions
    kind = a.gpu if not a.gpu_gib else f"{a.gpu} ({a.gpu_gib:g} GiB)"
    where = f"{plan.gpus} x {kind} on {d.nodes(a.gpus_per_node)} node(s)"
    if d.server is None:
        return [model, f"{where}: learner and sampler in one process"]
    each = f"{d.engines} sampler(s) on {d.server.gpus} GPU(s) each"
    return [model, f"{where}: learner on {d.learner_gpus}, {each}{', on the same GPUs' if d.shared else ''}"]


def remedy(fitting: Sequence[str] | None) -> list[str]:
    """What would fit, in words."""
    if fitting is None:
        return [
            "No combination of the settings that decide about memory fits here: take a smaller model or more memory."
        ]
    return [f"The nearest that fits: {' '.join(fitting)}"]


def _place(place: ProcessMemory) -> ShownTable:
    many = f", each of {place.count}" if place.count > 1 else ""
    total = ("  in all", f"{_bytes(place.total)} of {_bytes(place.budget)}")
    rows: list[tuple[str | Cell, ...]] = [(f"  {name}", _bytes(size)) for name, size in place.parts.items()]
    rows.append(tuple(Cell(text, kind="" if place.fits else "bad", strong=True) for text in total))
    columns = ShownColumn("", whole=True), ShownColumn("", right=True, whole=True)
    return table(columns, rows, title=f"{place.name}{many}")


def _figures(plan: ResourcePlan) -> ShownTable:
    step = plan.step
    rows = [
        ("episodes a step", f"{step['episodes']:,.0f}"),
        ("tokens a step", f"{step['tokens']:,.0f}, of which {step['sampled_tokens']:,.0f} sampled"),
        ("an update computes", f"{step['computed_tokens']:,.0f} of them: what episodes begin alike with counts once"),
        ("operations of an update", f"{step['update_flops']:.3g}"),
    ]
    rows.append(("a checkpoint", _bytes(int(step["checkpoint"]))))
    if plan.transport is not None:
        rows.append(("weights to samplers", plan.transport.text))
    if plan.pace is not None and plan.cost is not None:
        p, c = plan.pace, plan.cost
        rows += [
            ("weights sent a step", _bytes(int(step["weights_sent"]))),
            (
                "seconds a step",
                f"{p.step:,.0f} (rollout {p.rollout:,.0f}, update {p.update:,.0f}, weights {p.transfer:,.1f})",
            ),
            ("an episode", f"{p.episode:,.0f} s, with {p.running:,.0f} sequences decoding on each sampler"),
            ("tokens a second", f"{p.generated_per_second:,.0f} sampled, {p.learned_per_second:,.0f} learned from"),
            ("whole training", f"{c.hours:,.1f} h, {c.gpu_hours:,.0f} GPU hours"),
            (
                "dollars",
                f"{c.dollars:,.0f} (GPUs {c.gpu_dollars:,.0f}, users {c.user_dollars:,.0f} at "
                f"{c.user_dollars_per_episode:.3f} an episode, validation's users {c.validation_dollars:,.0f})",
            ),
        ]
        if c.validations:
            rows.insert(-1, ("validation", f"{c.validations:,} conversations, {c.validation_hours:,.1f} h of that"))
        if plan.teacher is not None:
            t = plan.teacher
            rows.append(
                (
                    "cold start before it",
                    f"{t.dollars:,.0f} dollars more if models write it: {t.played:,} conversations to keep {t.count:,} "
                    f"(teacher {t.teacher:,.0f}, users {t.users:,.0f}, tools {t.tools:,.0f})",
                )
            )
    return table([ShownColumn("", whole=True), ShownColumn("")], rows)


def _assumed(a: Assumptions) -> str:
    assumed = {name: value for name, value in a.to_json().items() if name not in ("gpu_gib", "reserved_gib") or value}
    pairs = ", ".join(f"{name}={v if isinstance(v, str) else format(v, 'g')}" for name, v in assumed.items())
    return f"Assumed, each to be replaced by --assume KEY=VALUE (docs/scaling.md says where they come from): {pairs}"


def _bytes(size: int) -> str:
    for unit, scale in (("GiB", GIB), ("MiB", 1 << 20)):
        if size >= scale:
            return f"{size / scale:,.1f} {unit}"
    return f"{size / 1024:,.1f} KiB"
