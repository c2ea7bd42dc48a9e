"""What other programs need of a checkpoint beside weights and tokenizer: how conversations become text, when a reply is
over, and a card for people.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muarl.basics.errors import CheckpointError, DataError
from muarl.basics.untrusted import read_json_object
from muarl.chat_formats.families import (
    AUTO,
    MARK,
    PLAIN,
    QWEN3,
    TEXT,
    TOOL_TEXT_MARK,
    EarlierThoughts,
    Family,
    ToolText,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

CONFIG = "config.json"
GENERATION = "generation_config.json"
CARD = "README.md"
BENCHMARKS = "muarl_trained_on_benchmarks"
"""The field of ``CONFIG`` with the benchmarks on whose own tasks a checkpoint, or one that it was made from, was
trained. It goes with the model, through transformers and other trainers too, since they keep fields of others."""
_ENDS = ("<|im_end|>", "<|endoftext|>")
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")


@dataclass(frozen=True, slots=True)
class ModelNotes:
    """What a checkpoint's files say of how it came about."""

    thinking: bool = False
    """Whether the model was trained to think first."""
    earlier_thoughts: EarlierThoughts = "family"
    """As ``model.earlier_thoughts``."""
    chat_format: str = AUTO
    """As in the section ``model``."""
    tool_text: ToolText | None = None
    """As in the section ``model``."""
    start: Path | None = None
    """The folder that training began with, whose generation settings are kept."""
    base: str = ""
    """The name of ``start``."""
    methods: tuple[tuple[str, str], ...] = ()
    """(phase, words) for what training may be doing when a checkpoint is written."""
    method: str = ""
    """What it did last."""
    step: int | None = None
    """For how many steps it did that."""
    data: str = ""
    """What was trained on."""
    settings: tuple[tuple[str, str], ...] = ()
    """(name, value) of what else a reader should know."""
    benchmarks: tuple[str, ...] = ()
    """The benchmarks on whose own tasks it was trained."""
    scores: tuple[tuple[str, str], ...] = ()
    """(what was measured, the figure)."""
    license: str = ""
    """As model cards name it, empty where it is the base's."""

    def at(self, progress: Mapping[str, Any]) -> ModelNotes:
        """The notes of a checkpoint with this progress: its ``phase`` and ``step``, as far as it says."""
        method = dict(self.methods).get(str(progress.get("phase")), self.method)
        return replace(self, method=method, step=progress.get("step", self.step))


def generation_settings(
    start: Path | None, tokenizer: PreTrainedTokenizerFast, ends: Sequence[str] = _ENDS
) -> dict[str, Any]:
    """The fields of generation_config.json: plain values of the start folder's, if it has one, else when a reply is
    over (``ends``) and what pads."""
    own: dict[str, Any] = {}
    if start is not None and (start / GENERATION).is_file():
        try:
            settings = read_json_object(start / GENERATION)
        except DataError:
            settings = {}  # a broken one is as good as none
        own = {name: value for name, value in settings.items() if _plain(value)}
    vocabulary = tokenizer.get_vocab()
    ids = [vocabulary[token] for token in ends if token in vocabulary]
    if ids and own.get("eos_token_id") is None:
        own["eos_token_id"] = ids
    if ids and own.get("pad_token_id") is None:
        own["pad_token_id"] = ids[-1]
    return own


def _plain(value: Any) -> bool:
    """A number, a truth value, nothing, or a list of numbers: what generation settings consist of."""
    if isinstance(value, list):
        return all(isinstance(item, (int, float)) for item in value)
    return value is None or isinstance(value, (bool, int, float))


def write_release(
    folder: Path,
    tokenizer: PreTrainedTokenizerFast,
    notes: ModelNotes | None = None,
    *,
    keep_template: bool = False,
) -> None:
    """Write tokenizer, chat template, generation_config.json and the model card; and the benchmarks that were trained
    on into the folder's config.json, beside those that are there. The template is muarl's own for the
    Qwen3 format, in which every thought is kept; otherwise, with ``keep_template``, and where the model was trained
    with thoughts dropped as its template drops them, it is the tokenizer's, if it has one."""
    from muarl.chat_formats.choice import keeps_thoughts, own_template

    notes = notes or ModelNotes()
    template = tokenizer.chat_template
    family = _family(tokenizer, notes.chat_format)
    dropped = notes.thinking and notes.earlier_thoughts == "family" and not keeps_thoughts(tokenizer, family)
    try:
        if family.name == TEXT.name:
            tokenizer.chat_template = template or PLAIN
        elif not template or (family is QWEN3 and not keep_template and not dropped):
            tokenizer.chat_template = own_template(thinking=notes.thinking)
        tokenizer.save_pretrained(str(folder))
    finally:
        tokenizer.chat_template = template
    _complete_tokenizer_config(folder / "tokenizer_config.json", notes.chat_format, notes.tool_text)
    ends = _ENDS if family is QWEN3 else tuple(dict.fromkeys((*family.ends, tokenizer.eos_token or family.ends[0])))
    _write_json(folder / GENERATION, generation_settings(notes.start, tokenizer, ends))
    if notes.benchmarks:
        fields = read_json_object(folder / CONFIG)
        _write_json(folder / CONFIG, fields | {BENCHMARKS: sorted({*_listed(fields), *notes.benchmarks})})
    (folder / CARD).write_text(model_card(notes, family, dropped=dropped), encoding="utf-8")


def benchmarks_trained_on(folder: Path) -> tuple[str, ...]:
    """The benchmarks on whose own tasks a checkpoint, or one that it was made from, was trained, as far as its folder
    says. DataError if its config.json cannot be read."""
    return _listed(read_json_object(folder / CONFIG))


def _listed(fields: Mapping[str, Any]) -> tuple[str, ...]:
    names = fields.get(BENCHMARKS)
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()


def _family(tokenizer: PreTrainedTokenizerFast, name: str) -> Family:
    """The family of the tokenizer's chat format; Qwen3's for one that has none (such as a user model's): whoever needs
    its format says what is wrong with it, and a checkpoint is not lost for it."""
    from muarl.chat_formats.choice import family_of

    try:
        return family_of(tokenizer, name)
    except CheckpointError:
        return QWEN3


def model_card(notes: ModelNotes, family: Family = QWEN3, *, dropped: bool = False) -> str:
    """The model card: base, method, steps, data and scores as far as they are known, how to use it, and the license.

    ``dropped``: the model was trained with the thoughts of earlier turns dropped."""
    head = ["library_name: transformers", "pipeline_tag: text-generation", "tags: [muarl, tool-use]"]
    if _HUB_NAME.fullmatch(notes.base) and not Path(notes.base).exists():
        head.append(f"base_model: {notes.base}")
    if notes.license:
        head.append(f"license: {notes.license}")
    rows = [
        ("Base", notes.base),
        ("Method", notes.method),
        ("Steps", "" if notes.step is None else f"{notes.step:,}"),
        ("Data", notes.data),
        ("Thinking", "thinks before it answers" if notes.thinking else _off(family)),
        *notes.settings,
    ]
    about = "\n".join(f"| {name} | {_cell(value)} |" for name, value in rows if value)
    measured = "".join(f"| {_cell(name)} | {_cell(value)} |\n" for name, value in notes.scores)
    license_note = (
        "The weights are under the license named above."
        if notes.license
        else "The weights were trained from the base above: its license holds for them too."
    )
    return (
        "---\n" + "\n".join(head) + "\n---\n\n# A tool-using agent trained with muarl\n\n"
        f"| | |\n|---|---|\n{about}\n\n"
        + (f"## Scores\n\n| measured | |\n|---|---|\n{measured}\n" if measured else "")
        + "## Use\n\n"
        f"{_about_template(family, dropped=dropped)} "
        "It cannot keep control words that stand in messages or tool results from becoming\n"
        "control tokens, as `muarl serve` does: strip them from what strangers write.\n\n"
        "The model was trained with the policy of its domain as the system message, and with the domain's tools.\n\n"
        f"## License\n\n{license_note}\n"
    )


def _off(family: Family) -> str:
    return "off: an empty think block opens each reply" if family is QWEN3 else "off"


def _about_template(family: Family, *, dropped: bool) -> str:
    if family is QWEN3 and not dropped:
        return (
            "The chat template renders conversations with tools token for token as in training (Qwen3's format, with "
            "all\nturns' thoughts kept)."
        )
    if family.name == TEXT.name:
        return (
            "The chat template writes the turns; tools, calls and results are text in them, as muarl's chat format\n"
            '`text` has it (`CALL name(argument="value")`, a line each); `muarl serve` reads them as calls.'
        )
    thoughts = "" if dropped or family.keeps or family.thinking == "never" else ", with thoughts of earlier turns kept"
    return f"The chat template is the base's own; training followed it ({family.models}: `{family.name}`){thoughts}."


def _cell(text: str) -> str:
    return " ".join(str(text).replace("|", "\\|").split())


def _complete_tokenizer_config(path: Path, chat_format: str, tool_text: ToolText | None) -> None:
    """Name the class as every version of transformers knows it (version 5 writes a name that version 4 cannot load),
    and the chat format, and how it shows tools, if they had to be named."""
    fields = read_json_object(path)
    before = dict(fields)
    if fields.get("tokenizer_class") == "TokenizersBackend":
        fields["tokenizer_class"] = "PreTrainedTokenizerFast"
    if chat_format != AUTO:
        fields[MARK] = chat_format
    if tool_text is not None:
        fields[TOOL_TEXT_MARK] = tool_text
    if fields != before:
        _write_json(path, fields)


def _write_json(path: Path, fields: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(fields, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
