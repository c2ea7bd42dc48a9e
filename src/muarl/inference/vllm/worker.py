"""What muarl adds to vLLM's worker processes, by name (``worker_extension_cls``): this module is imported there only.

The methods become methods of vLLM's worker and are called through its ``collective_rpc``; what goes in and out is
strings, numbers and lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any


class WorkerExtension:
    """Mixed into vLLM's worker class, whose ``model_runner`` and ``vllm_config`` it uses."""

    model_runner: Any
    vllm_config: Any

    def muarl_report_before_truncation(self) -> bool:
        """From now on log-probabilities are those at the sampling temperature, before top-k and top-p.

        False if this vLLM's sampler is built in a way this does not know; they are then truncated.
        """
        sampler = getattr(self.model_runner, "sampler", None)
        inner = getattr(sampler, "topk_topp_sampler", None)
        if inner is not None:
            _before_filters(inner)
            return True
        if hasattr(sampler, "_sample_random"):  # vLLM's second model runner
            _before_fused_filters(sampler)
            return True
        return False

    def muarl_load(self, paths: Sequence[str]) -> list[str]:
        """Load checkpoint weights (Hugging Face names) from safetensors files, in place of all present ones.

        Returns the model's parameters that the files did not hold, or that vLLM cannot replace while it runs.
        """
        from safetensors import safe_open
        from vllm.config import set_current_vllm_config
        from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

        def stream() -> Iterator[tuple[str, Any]]:
            for path in paths:
                with safe_open(path, framework="pt", device="cpu") as file:
                    for name in file.keys():  # noqa: SIM118
                        yield name, file.get_tensor(name)

        model = self.model_runner.get_model()
        if self.vllm_config.device_config.device_type == "cpu":
            _unpack_experts(model)
        expected = {name.replace(".base_layer.", ".") for name, _ in model.named_parameters()}
        with set_current_vllm_config(self.vllm_config):
            initialize_layerwise_reload(model)
            loaded = model.load_weights(stream())
            lost = _lost(model, loaded or ())
            finalize_layerwise_reload(model, self.vllm_config.model_config)
            _repack_embeddings(model)
        self.model_runner.reset_lora_state()
        return lost if loaded is None else sorted({*lost, *(expected - set(loaded))})

    def muarl_repack(self) -> None:
        """What ``muarl_load`` does after loading, for weights that came through vLLM's own transfer."""
        _repack_embeddings(self.model_runner.get_model())


def _lost(model: Any, loaded: Iterable[str]) -> list[str]:
    """Parameters that a model says it has loaded, though nothing has reached them: some models' own code copies into
    them, past the loaders that a reload waits for, and the old values would stay."""
    from vllm.model_executor.model_loader.reload.layerwise import get_layerwise_info

    modules = dict(model.named_modules())
    unreached = []
    for name in loaded:
        stem, _, last = name.rpartition(".")
        module = modules.get(stem)
        if module is None or last not in module._parameters:  # such as what an adapter is put around
            continue
        info = get_layerwise_info(module)
        if info.can_load() and info.load_numel <= 0:
            unreached.append(name)
    return sorted(unreached)


def _unpack_experts(model: Any) -> None:
    """On a CPU, vLLM lays the weights of a mixture's experts out for its kernel when it makes that kernel, and not
    again when weights are loaded later, which the kernel would then misread. Without one it makes it anew."""
    for module in model.modules():
        method: Any = getattr(module, "quant_method", None)
        if getattr(method, "moe_kernel", None) is not None:
            method.moe_kernel = None


def _repack_embeddings(model: Any) -> None:
    """On a CPU, vLLM multiplies by copies of the weights in a layout of its own. It renews those of the layers that
    were loaded, but a head tied to the embedding is never loaded itself."""
    from vllm.model_executor.layers.vocab_parallel_embedding import UnquantizedEmbeddingMethod, VocabParallelEmbedding

    for module in model.modules():
        if isinstance(module, VocabParallelEmbedding) and isinstance(module.quant_method, UnquantizedEmbeddingMethod):
            module.quant_method.process_weights_after_loading(module)


def _before_filters(inner: Any) -> None:
    """The module filters and samples: let it report its input instead of what it kept."""
    draw = inner.forward

    def forward(logits: Any, generators: Any, k: Any, p: Any) -> tuple[Any, Any]:
        if k is None and p is None:
            return draw(logits, generators, k, p)
        scores = logits.log_softmax(dim=-1, dtype=logits.dtype)  # a new tensor: the filters work in place
        return draw(logits, generators, k, p)[0], scores

    inner.forward = forward


def _before_fused_filters(sampler: Any) -> None:
    draw = sampler._sample_random

    def sample_random(logits: Any, mapping: Any, mapping_np: Any, pos: Any, top_k: Any, top_p: Any, fused: bool) -> Any:
        if top_k is None and top_p is None:
            return draw(logits, mapping, mapping_np, pos, top_k, top_p, fused)
        scores = logits.clone()  # the filters work in place
        return draw(logits, mapping, mapping_np, pos, top_k, top_p, fused)[0], scores

    sampler._sample_random = sample_random
