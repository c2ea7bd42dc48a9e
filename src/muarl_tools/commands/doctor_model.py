"""``muarl doctor MODEL``: what muarl can do with a checkpoint, told before anything of it is loaded; and a line of the
doctor's report.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from muarl.models.support import OWN_MIXTURES, Support

if TYPE_CHECKING:
    from muarl.config.sections import ModelConfig

Status = Literal["ok", "note", "problem"]


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """One line of the doctor's report. ``problem`` stops muarl from working; ``note`` is worth knowing.

    ``data`` holds the same facts for programs: sizes in bytes, speeds in floating-point operations a second.
    """

    name: str
    status: Status
    says: str
    remedy: str = ""
    data: dict[str, Any] = field(default_factory=dict)


def check_model(spec: str, settings: ModelConfig | None = None) -> Iterator[DoctorCheck]:
    """The support of a checkpoint folder, a run, or a published model's name, with these settings. CheckpointError,
    with the remedy, for one that cannot be used."""
    from muarl.backends.model_support import local_folder
    from muarl.backends.pretrained import missing
    from muarl.basics.errors import CheckpointError
    from muarl.learning.checkpoint_folders import check_kind
    from muarl.models.support import support_of
    from muarl.planning.models import published, shape_from_config

    if (unfetched := missing(spec)) is not None and not Path(spec).exists():
        raise unfetched
    folder, known = local_folder(spec), published(spec)
    support = None if folder is None else check_kind(folder)
    shape = known if folder is None else shape_from_config(folder)
    if support is None and shape is not None:
        support = support_of(shape.to_config(), spec)
    if support is None or shape is None:
        raise CheckpointError(f"{spec}: neither a checkpoint on this machine nor the name of a published model")
    where = f"checkpoint {folder}" if folder else "not on this machine: its published sizes are taken"
    active = "" if shape.mixture is None else f", {shape.active_parameters:,} of them for each token"
    yield DoctorCheck(
        "model",
        "ok",
        f"{support.family}, {shape.parameters:,} parameters{active} ({where})",
        data={
            "family": support.family,
            "parameters": shape.parameters,
            "active_parameters": shape.active_parameters,
            "folder": str(folder) if folder else None,
        },
    )
    yield from explain(support)
    yield from explain_chat(folder, settings)


def explain(support: Support) -> Iterator[DoctorCheck]:
    """One line for each thing that a model allows."""
    own = support.path == "own"
    if own:
        yield DoctorCheck("computed by", "ok", "muarl's own path", data={"path": "own"})
    else:
        tested = "compared with transformers by muarl's tests" if support.verified else "not in muarl's tests"
        remedy = "" if support.verified else "Compare a few log-probabilities with transformers before a long run."
        data = {"path": "generic", "reason": support.reason, "verified": support.verified}
        text = f"transformers: exact, slower than the own path ({support.reason}); {tested}"
        yield DoctorCheck("computed by", "note", text, remedy, data)
    kept = "one run of tokens without padding" if own else "rows of one document each, with others of about its length"
    yield DoctorCheck("packing", "ok", f"yes: {kept}", data={"packing": support.packing})
    yield _yes_or_no("prefix sharing", support.prefix_sharing, "every episode's prompt is computed again")
    where = ", beside attention's matrices" if support.family in OWN_MIXTURES else ""
    yield DoctorCheck("LoRA", "ok", f"yes: learner.lora{where}", data={"supported": True})
    yield DoctorCheck("sharding", "ok", "yes: learner.kind=fsdp", data={"supported": True})
    yield _yes_or_no("sampling", support.sampling, "engine.kind=torch is refused; use engine.kind=vllm")
    graphs = "engine.compile has to be auto or none" + (f" ({support.unrecorded})" if own else "")
    yield _yes_or_no("CUDA graphs", support.fixed_steps, graphs)


THINKING = {
    "optional": "if wanted: model.thinking=true",
    "always": "always: model.thinking=true has to be set",
    "never": "no",
}


def explain_chat(folder: Path | None, settings: ModelConfig | None = None) -> Iterator[DoctorCheck]:
    """The chat format of a checkpoint's folder, whether its models think, and the ids that end a reply; or why it has
    no format that can be used."""
    from muarl.basics.errors import CheckpointError
    from muarl.basics.extras import is_installed

    if folder is None:
        yield DoctorCheck("chat format", "note", "told by the tokenizer's files, which are not on this machine")
        return
    if not is_installed("transformers"):
        yield DoctorCheck("chat format", "note", "told where muarl[train] is installed", "pip install 'muarl[train]'")
        return
    if not (folder / "tokenizer.json").is_file():
        remedy = "Copy the model's tokenizer files, chat_template.jinja among them, into the folder."
        yield DoctorCheck("chat format", "problem", f"no tokenizer.json in {folder}", remedy)
        return
    try:
        yield from _chat(folder, settings)
    except CheckpointError as problem:
        yield DoctorCheck("chat format", "problem", str(problem), _way_on(folder))


def _way_on(folder: Path) -> str:
    """The command that gets on where a checkpoint's chat format cannot be used as it is; empty where none does, and the
    problem itself says what to do."""
    from muarl.basics.errors import CheckpointError
    from muarl.chat_formats.choice import choice_of
    from muarl.learning.checkpoints import load_tokenizer

    try:
        choice_of(load_tokenizer(folder), "text")
    except CheckpointError:
        return ""
    return f"With the format that needs nothing of a model: muarl doctor {folder} model.chat_format=text"


def _chat(folder: Path, settings: ModelConfig | None) -> Iterator[DoctorCheck]:
    from muarl.backends.models import model_format
    from muarl.chat_formats.choice import chat_format, choice_of, keeps_thoughts, thinking_modes
    from muarl.learning.checkpoints import load_tokenizer

    tokenizer = load_tokenizer(folder)
    name = "auto" if settings is None else settings.chat_format
    choice = choice_of(tokenizer, name)
    family = choice.family
    if settings is None:
        form = chat_format(tokenizer, thinking=thinking_modes(tokenizer)[0])
    else:
        form = model_format(tokenizer, settings)
    writer = "renderers, as the checkpoint's template prescribes"
    if choice.template:
        writer = "the checkpoint's own template"
    elif family.name == "text":
        writer = "User: and Agent:, as it has no template"
    text = f"{family.name} ({family.models}), written by {writer}; tool calls: {family.calls}"
    yield DoctorCheck(
        "chat format", "ok", text, choice.notice, {"format": family.name, "template": bool(choice.template)}
    )
    text, keeps = THINKING[family.thinking], family.keeps
    if family.thinking != "never":
        keeps = keeps_thoughts(tokenizer, family)
        text += "; thoughts of earlier turns " + (
            "stay in the conversation"
            if keeps
            else "go when the user speaks again, as the template has it (model.earlier_thoughts=keep keeps them)"
        )
    yield DoctorCheck("thinking", "ok", text, data={"thinking": family.thinking, "template_keeps": keeps})
    stops = {form.tokenizer.decode([i]): i for i in form.stop_ids}
    yield DoctorCheck("stop ids", "ok", ", ".join(f"{token} ({i})" for token, i in stops.items()), data=dict(stops))


def _yes_or_no(name: str, there: bool, otherwise: str) -> DoctorCheck:
    if there:
        return DoctorCheck(name, "ok", "yes", data={"supported": True})
    return DoctorCheck(name, "note", f"no: {otherwise}", data={"supported": False})


def check_formats() -> DoctorCheck:
    """Training steps of a small layer in float32 and in bfloat16: which of them this machine is fast at."""
    from muarl.backends.number_formats import MATTERS, measure

    device, rates = measure()
    fast, slow = sorted(rates, key=lambda name: rates[name], reverse=True)
    ratio = rates[fast] / rates[slow]
    data = {"device": device, "steps_per_second": rates}
    if ratio < MATTERS:
        return DoctorCheck("number format", "ok", f"float32 and bfloat16 are about as fast on this {device}", "", data)
    text = f"{fast} is {ratio:.1f} times as fast as {slow} on this {device} (attention and products, with gradients)"
    if fast == "float32":
        remedy = "Leave model.dtype=float32 where the memory allows: bfloat16 saves memory here, and no time."
        return DoctorCheck("number format", "note", text, remedy, data)
    return DoctorCheck("number format", "ok", text, "Set model.dtype=auto for models of your own size.", data)
