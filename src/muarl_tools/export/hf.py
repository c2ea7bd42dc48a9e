"""A checkpoint as a Hugging Face folder that vLLM, transformers and others load: without the trainer's state, in a
number format of one's choice, with chat template, generation settings and a model card that knows the run's scores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from muarl.accounts.metrics import NOT_CHECKED, SUCCESS_WITHOUT_VIOLATION
from muarl.backends.checkpoint_names import SHIPPED, checkpoint_name, existing_checkpoint, run_of
from muarl.backends.model_notes import COLD_START, OWN_LICENSE, RL, NotedRun
from muarl.basics.errors import ConfigError, DataError, MuarlError
from muarl.basics.json_values import as_figure, bounds
from muarl.basics.untrusted import read_json_object
from muarl.config.load import load_config
from muarl.config.sections import RunConfig
from muarl.learning.checkpoint_files import WeightReader, WeightWriter, whole_folder
from muarl.learning.checkpoint_folders import STEP, latest_checkpoint
from muarl.learning.checkpoints import check_policy, check_sums, load_tokenizer, write_config
from muarl.learning.release import ModelNotes, write_release
from muarl.observe.headline import clean_of, clean_text, is_trained_on
from muarl.observe.rundir import RunDirectory
from muarl.runs.own_settings import TAKEN, THOUGHTS, own_settings
from muarl_tools.export import ExportOptions, free_place

VALIDATION = "validation"


def export(options: ExportOptions) -> Path:
    """Write the folder; returns it. One tensor is held at a time. CheckpointError for what is no whole checkpoint."""
    folder = existing_checkpoint(options.source)
    out = free_place(options.out or Path(f"{_slug(checkpoint_name(folder))}-hf"))
    config = check_policy(folder)
    check_sums(folder, state=False)
    tokenizer, stored = load_tokenizer(folder), WeightReader(folder)
    names = [name for name in stored.shapes if name != "lm_head.weight" or not config.tie_word_embeddings]
    kind = getattr(torch, options.dtype) if options.dtype is not None else stored.read(names[0], 0, 1).dtype
    with whole_folder(out) as made:
        write_config(made, config, kind)
        writer = WeightWriter(made, {n: torch.Size(stored.shapes[n]) for n in names}, kind)
        for name in names:
            writer.add(name, stored.read(name))
        writer.finish()
        write_release(made, tokenizer, notes_of(options.source, folder), keep_template=run_of(folder) is None)
    return out


def notes_of(spec: str, folder: Path) -> ModelNotes:
    """What is known of a checkpoint: from its run's folder, if it is in one."""
    run = run_of(folder)
    if spec in SHIPPED:
        return ModelNotes(start=folder, method="language modelling from random weights", license=OWN_LICENSE)
    if run is None:
        return ModelNotes(start=folder, base=folder.name)
    step, phase = STEP.fullmatch(folder.name), "rl" if folder.parent.name == "rl" else COLD_START
    progress: dict[str, Any] = {} if step is None else {"phase": phase, "step": int(step[1])}
    began = latest_checkpoint(run / "checkpoints") if phase == "rl" else None
    # Of a run whose domain nobody here knows it is still known whether its model thinks.
    values = own_settings(spec, [name for name in TAKEN if name not in THOUGHTS]).values
    notes = ModelNotes(
        thinking=bool(values.get("model.thinking")),
        earlier_thoughts=values.get("model.earlier_thoughts", "family"),
        start=folder,
    )
    config = _config(run)
    if config is not None:
        # Generation settings are the checkpoint's own: its start may not be on this machine.
        notes = replace(NotedRun.of(config).notes((COLD_START, RL), began), start=folder)
    named = (("Run", checkpoint_name(folder)), *notes.settings)
    return replace(notes.at(progress), settings=named, scores=_scores(run, folder, progress))


def _config(run: Path) -> RunConfig | None:
    """The run's configuration, for the card; None if this version cannot read it."""
    try:
        return load_config(run / "config.yaml", starts=False)
    except ConfigError:
        return None


def _scores(run: Path, folder: Path, progress: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Success on held-out tasks: of the run's own evaluation, if this is the checkpoint that it was of, and of the
    validation after its step."""
    found = []
    phase, step = progress.get("phase"), progress.get("step")
    try:
        summary = read_json_object(run / "summary.json")
    except DataError:
        summary = {}
    own = summary.get("rl" if phase == "rl" else "cold_start")
    if isinstance(own, dict) and isinstance(own.get("success"), float) and folder == latest_checkpoint(folder.parent):
        found.append(("success on held-out tasks of the run", _share(own)))
        clean = clean_of(own)
        spread = f" (95% interval {clean.interval_text.replace(' – ', ' to ')})" if clean and clean.interval else ""
        found.append(("the same without any violation", f"{clean_text(clean)}{spread}"))
        if (nothing := as_figure(summary.get("do_nothing"))) is not None:
            found.append(("doing nothing, on the same tasks", f"{nothing:.1%}"))
        if is_trained_on(summary):
            found.append(("trained on the benchmark's own tasks", "yes: its score means nothing"))
    try:
        rows = RunDirectory.at(run).read_metrics() if phase == "rl" else []
    except MuarlError:
        rows = []
    for row in rows:
        success = as_figure(row.get("success"))
        if row.get("phase") == VALIDATION and row.get("step") == (step or 0) - 1 and success is not None:
            found.append(("success in validation", f"{success:.1%}"))
            obeyed = as_figure(row.get(SUCCESS_WITHOUT_VIOLATION))
            told = NOT_CHECKED if obeyed is None else f"{obeyed:.1%}"
            found.append(("the same in validation without any violation", told))
    return tuple(found)


def _share(score: dict[str, Any]) -> str:
    interval = bounds(score.get("interval"))
    text = f"{score['success']:.1%}"
    if interval is not None:
        text += f" (95% interval {interval[0]:.1%} to {interval[1]:.1%})"
    tasks = score.get("tasks")
    return text + (f", {tasks} tasks" if isinstance(tasks, int) else "")


def _slug(name: str) -> str:
    return "-".join("".join(c if c.isalnum() or c in "._" else " " for c in name).split()).lower()
