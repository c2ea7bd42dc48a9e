"""``muarl base``: resumed, of several domains, and continued from another base."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

from muarl.basics.errors import CheckpointError, ConfigError
from muarl.chat_formats.qwen3 import CONTROL_TOKENS
from muarl.cli.main import app
from muarl.config.load import load_config
from muarl.config.sections import RunConfig
from muarl.environments.registry import find
from muarl.learning.checkpoints import load_policy, load_tokenizer, save_policy
from muarl.learning.learner import TorchLearner
from muarl.learning.packing import Sample
from muarl.observe.rundir import RunDirectory
from muarl.recipes import pretraining
from muarl.recipes.base_measures import PredictionStats, measures, predicted
from muarl.recipes.tiny import pieces_of
from muarl.recipes.tiny_extension import learned_pieces, spare_tokens

SMALL = (
    "threads=1", "base.hidden=32", "base.layers=2", "base.steps=6", "base.batch=4", "base.conversations=12",
    "base.validation=2", "base.checkpoint_every=2", "base.spare_tokens=30",
)  # fmt: skip
EMBEDDINGS = "model.embed_tokens.weight"


def configured(folder: Path, *more: str) -> RunConfig:
    return load_config("quickstart", [f"runs_dir={folder}", "name=base", "domain.name=hotel-generated", *SMALL, *more])


@pytest.fixture(scope="module")
def hotel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a few steps."""
    return pretraining.run(configured(tmp_path_factory.mktemp("hotel")))


def weights(run: Path) -> bytes:
    return (run / "checkpoints" / "base" / "model.safetensors").read_bytes()


def figures(run: Path) -> list[dict[str, Any]]:
    timed = ("seconds", "time/update", "tokens_per_second")
    return [{k: v for k, v in row.items() if k not in timed} for row in RunDirectory.at(run).read_metrics()]


def test_a_base_talks_to_easy_users_unless_others_are_asked_for() -> None:
    assert not pretraining.base_users(load_config("quickstart").user).traits.any
    for name in ("typical", "hard"):
        asked = load_config("quickstart", [f"user.traits={name}"]).user
        assert pretraining.base_users(asked) == asked and asked.traits.any


def stops_after(steps: int, problem: BaseException) -> Callable[..., Any]:
    taken = iter(range(steps))
    step = TorchLearner.sft_step

    def stopping(self: TorchLearner, samples: list[Sample]) -> Any:
        if next(taken, None) is None:
            raise problem
        return step(self, samples)

    return stopping


@pytest.mark.slow
def test_a_run_that_was_broken_off_ends_with_the_same_weights(
    hotel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = configured(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(TorchLearner, "sft_step", stops_after(3, MemoryError("killed")))
        with pytest.raises(MemoryError):
            pretraining.run(config)
    run = tmp_path / "base"
    assert (run / "checkpoints" / "pretraining" / "step-000002").is_dir()
    assert not (run / "checkpoints" / "base").exists()
    assert pretraining.run(config.model_copy(update={"resume": run})) == run
    assert weights(run) == weights(hotel)
    assert figures(run) == figures(hotel)
    assert json.loads((run / "status.json").read_text())["state"] == "finished"


@pytest.mark.slow
def test_the_command_resumes_a_run_under_its_own_name(hotel: Path, tmp_path: Path) -> None:
    run = tmp_path / "mine"
    shutil.copytree(hotel, run)
    shutil.rmtree(run / "checkpoints" / "base")
    result = CliRunner().invoke(app, ["base", "--resume", str(run)])
    assert result.exit_code == 0, result.output
    assert weights(run) == weights(hotel)
    assert figures(run) == figures(hotel)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_ctrl_c_leaves_a_checkpoint_where_it_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from muarl.observe.progress import Phase

    advance = Phase.advance

    def interrupted(self: Phase, *args: Any, **figures: Any) -> None:
        advance(self, *args, **figures)
        if "nll" in figures and len(figures_of(tmp_path / "base")) == 3:
            raise KeyboardInterrupt

    def figures_of(run: Path) -> list[Any]:
        return RunDirectory.at(run).read_metrics()

    monkeypatch.setattr(Phase, "advance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pretraining.run(configured(tmp_path, "base.checkpoint_every=0"))
    assert [path.name for path in (tmp_path / "base" / "checkpoints" / "pretraining").iterdir()] == ["step-000003"]


@pytest.mark.slow
def test_a_resumed_run_may_be_longer_and_not_shorter_or_another(hotel: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"base\.seed was 3, not 4"):
        pretraining.run(load_config(hotel / "config.yaml", [f"resume={hotel}", "base.seed=4"]))
    with pytest.raises(ConfigError, match=r"base\.steps: 5, and this run has made 6"):
        pretraining.run(load_config(hotel / "config.yaml", [f"resume={hotel}", "base.steps=5"]))
    assert json.loads((hotel / "status.json").read_text())["state"] == "finished"


@pytest.mark.slow
def test_several_domains_are_mixed_by_weight_and_measured_apart(tmp_path: Path) -> None:
    mix = '[{"name": "hotel-generated", "weight": 2}, {"name": "clinic-generated"}]'
    run = pretraining.run(configured(tmp_path, f"domain.name={mix}", "base.steps=1"))
    measured = json.loads((run / "summary.json").read_text())["validation"]
    assert set(measured["by_domain"]) == {"hotel-generated", "clinic-generated"}
    parts = measured["by_domain"].values()
    assert sum(part["tokens"] for part in parts) == measured["tokens"] > 0
    assert min(part["nll"] for part in parts) <= measured["nll"] <= max(part["nll"] for part in parts)
    assert all(0 <= part["ids_right"] <= 1 and part["ids"] > 0 for part in parts)
    known = load_tokenizer(run / "checkpoints" / "base").get_vocab()
    assert all(piece in known for name in ("hotel-generated", "clinic-generated") for piece in find(name).phrases()[:9])


@pytest.mark.slow
def test_a_base_continues_in_a_world_that_it_has_not_read(hotel: Path, tmp_path: Path) -> None:
    more = (
        "domain.name=bank-generated",
        f"base.checkpoint={hotel}",
        "base.steps=1",
        "base.lr=1e-9",
        "base.matrix_lr=1e-9",
    )
    run = pretraining.run(configured(tmp_path, *more, "base.spare_tokens=0", "base.hidden=64"))
    before, after = hotel / "checkpoints" / "base", run / "checkpoints" / "base"
    old, new = load_tokenizer(before), load_tokenizer(after)
    assert set(pieces_of(find("bank-generated"))) | set(CONTROL_TOKENS) == set(new.get_added_vocab())
    assert set(new.get_vocab()) - set(new.get_added_vocab()) == set(old.get_vocab()) - set(old.get_added_vocab())
    had, has = load_file(before / "model.safetensors"), load_file(after / "model.safetensors")
    both = [token for token in new.get_vocab() if token in old.get_vocab()]
    assert len(both) > len(CONTROL_TOKENS) + 300
    rows, kept = has[EMBEDDINGS].float(), had[EMBEDDINGS].float()
    assert torch.allclose(rows[new.convert_tokens_to_ids(both)], kept[old.convert_tokens_to_ids(both)], atol=1e-3)
    assert all(torch.allclose(has[name], had[name], atol=1e-3) for name in had if name != EMBEDDINGS)
    places = sorted(i for token, i in new.get_vocab().items() if token not in old.get_vocab())
    spare = spare_tokens(old)
    assert torch.allclose(rows[places[: len(spare)]], kept[spare], atol=1e-3), "new pieces take over spare rows"
    fresh = rows[places[len(spare) :]]
    pieces = kept[learned_pieces(old)]
    assert torch.allclose(fresh.mean(0), pieces.mean(0), atol=4 * float(pieces.std(0).max()) / len(fresh) ** 0.5)
    assert torch.allclose(fresh.std(0), pieces.std(0), rtol=0.25)
    card = (after / "README.md").read_text()
    assert "language modelling from the checkpoint base (base)" in card


@pytest.mark.slow
def test_a_base_may_read_words_and_be_continued_in_them(tmp_path: Path) -> None:
    first = pretraining.run(configured(tmp_path, "base.words=true", "base.steps=1"))
    more = ("base.words=true", "domain.name=bank-generated", f"base.checkpoint={first}", "base.steps=1", "name=more")
    for run, name in ((first, "hotel-generated"), (pretraining.run(configured(tmp_path, *more)), "bank-generated")):
        known = load_tokenizer(run / "checkpoints" / "base").get_added_vocab()
        assert set(find(name).entities()) <= set(known)
        assert not (set(find(name).phrases()) - set(find(name).entities())) & set(known)


def test_only_a_base_can_be_continued_with_other_words(hotel: Path, tmp_path: Path) -> None:
    policy = load_policy(hotel / "checkpoints" / "base")
    policy.model.config.tie_word_embeddings = False
    policy.model.lm_head.weight = torch.nn.Parameter(policy.model.get_input_embeddings().weight.detach().clone())
    folder = save_policy(tmp_path / "untied", policy.model, policy.tokenizer)
    with pytest.raises(CheckpointError, match=r"base\.checkpoint: .*only a checkpoint that `muarl base` made"):
        pretraining.run(configured(tmp_path, f"base.checkpoint={folder}"))
    with pytest.raises(CheckpointError, match="nowhere"):
        pretraining.run(configured(tmp_path, "base.checkpoint=nowhere"))
    assert not (tmp_path / "base").exists()


def test_spare_tokens_are_drawn_anew_for_every_step(hotel: Path) -> None:
    policy = load_policy(hotel / "checkpoints" / "base")
    spare, pieces = spare_tokens(policy.tokenizer), learned_pieces(policy.tokenizer)
    assert len(spare) == 30
    table = policy.model.get_input_embeddings().weight
    before = table.detach().clone()
    pretraining.draw_anew(policy.model, spare, pieces, 0, 1)
    first = table.detach().clone()
    changed = (first != before).any(1).nonzero().flatten().tolist()
    assert changed == spare
    pretraining.draw_anew(policy.model, spare, pieces, 0, 2)
    assert (table[spare] != first[spare]).all()
    pretraining.draw_anew(policy.model, spare, pieces, 0, 1)
    assert torch.equal(table, first)


def test_predictions_are_counted_where_the_agent_speaks(hotel: Path) -> None:
    model = load_policy(hotel / "checkpoints" / "base").model
    ids = [5, 9, 300, 301, 302]
    with torch.no_grad():
        logprobs = model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
    best = int(logprobs[3].argmax())
    ids[4] = best
    found = predicted(model, [Sample(ids, [0.0, 0.1, 1.0, 0.1, 1.0])], [best])
    assert found.tokens == 2
    assert found.nll == pytest.approx(-float(logprobs[1, 300] + logprobs[3, best]), rel=1e-4)
    assert (found.ids, found.right) == (1 + (best == 300), 1 + (best == 300 == int(logprobs[1].argmax())))


def test_measures_are_of_tokens_and_by_domain_only_where_there_are_several() -> None:
    a, b = PredictionStats(10, 5.0, 4, 1), PredictionStats(30, 3.0, 0, 0)
    assert measures({"a": a}) == {"nll": 0.5, "ids_right": 0.25, "tokens": 10, "ids": 4}
    assert measures({"a": a, "b": b}) == {
        "nll": 0.2, "ids_right": 0.25, "tokens": 40, "ids": 4,
        "by_domain": {"a": measures({"a": a}), "b": {"nll": 0.1, "tokens": 30, "ids": 0}},
    }  # fmt: skip
