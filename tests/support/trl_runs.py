"""A step or two of TRL's GRPOTrainer on a CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from muarl.backends.checkpoint_names import checkpoint_folder


def tokenizer_and_model(*, trl_template: bool = True) -> tuple[Any, Any]:
    """The shipped checkpoint. ``trl_template``: with a chat template whose tool calls TRL can read."""
    import torch
    from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

    folder = str(checkpoint_folder("base"))
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder, padding_side="left")
    if trl_template:
        from trl.chat_template_utils import qwen3_chat_template

        tokenizer.chat_template = qwen3_chat_template
    return tokenizer, Qwen3ForCausalLM.from_pretrained(folder, dtype=torch.float32)


def settings(folder: Path, **changes: Any) -> Any:
    """TRL's settings for a step of two prompts with two rollouts each."""
    from trl import GRPOConfig

    usual = dict(
        use_cpu=True,
        bf16=False,
        max_steps=1,
        num_generations=2,
        per_device_train_batch_size=4,
        generation_batch_size=4,
        shuffle_dataset=False,
        temperature=1.0,
        beta=0.0,
        use_vllm=False,
        gradient_checkpointing=False,
        dataloader_pin_memory=False,
        chat_template_kwargs={"enable_thinking": False},
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )
    return GRPOConfig(str(folder / "trl"), **{**usual, **changes})
