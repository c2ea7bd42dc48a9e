"""``muarl serve``: what is refused before any work, and a server from its first line to its last."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
import yaml
from typer.testing import CliRunner, Result

from muarl.backends.checkpoint_names import checkpoint_folder
from muarl.backends.engines import Backend
from muarl.backends.models import load_model
from muarl.basics.errors import ConfigError
from muarl.basics.web.addresses import listen
from muarl.cli.main import app
from muarl.config.load import load_config
from muarl.environments.configure import briefing
from muarl.inference.torch_engine import TorchEngine
from muarl_tools.serve_model.http import ChatServer
from muarl_tools.serve_model.recipe import (
    ServeOptions,
    fitting_slots,
    known_tools,
    make_service,
    served_config,
    settings_told,
    tiny_hint,
)
from support.chat_server import asked, client, serving_service


@pytest.fixture(autouse=True)
def no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MUARL_SERVE_TOKEN", "MUARL_SERVE_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)


def serve(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["serve", *arguments])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no/such/folder"], "no such checkpoint folder"),
        (["base", "--host", "0.0.0.0", "--port", "0"], "MUARL_SERVE_TOKEN"),
        (["base", "--max-context", "100000"], "max_position_embeddings"),
        (["base", "--port", "0", "--device", "cuda:99"], "cuda:99"),
        (["base", "model.no_such_key=1"], "no_such_key"),
    ],
)
def test_what_is_refused(arguments: list[str], said: str) -> None:
    done = serve(*arguments)
    assert done.exit_code == 2
    assert said in done.output


def test_an_address_that_is_taken() -> None:
    with listen("127.0.0.1", 0) as taken:
        done = serve("base", "--port", str(taken.getsockname()[1]))
    assert done.exit_code == 2
    assert "choose another port" in done.output


def test_a_token_file_that_others_can_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "token"
    file.write_text("very-secret-token")
    file.chmod(0o644)
    monkeypatch.setenv("MUARL_SERVE_TOKEN_FILE", str(file))
    done = serve("base", "--port", "0")
    assert done.exit_code == 2
    assert "chmod 600" in done.output
    assert "very-secret-token" not in done.output


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vLLM is installed")
def test_vllm_where_it_is_not_installed() -> None:
    done = serve("base", "--port", "0", "--engine", "vllm")
    assert done.exit_code == 2
    assert "vLLM is not installed" in done.output


def test_what_the_checkpoint_decides(tmp_path: Path) -> None:
    config = served_config(ServeOptions("base", slots=3))
    assert (config.model.max_context, config.rollout.concurrency, config.model.thinking) == (2048, 3, False)
    assert served_config(ServeOptions("base", settings=("model.max_context=99",))).model.max_context == 99
    with pytest.raises(ConfigError, match=r"engine\.processes: .* leave it out"):
        served_config(ServeOptions("base", settings=("engine.processes=2",)))
    with pytest.raises(ConfigError, match=r"engine\.processes: .* leave it out"):
        served_config(ServeOptions("base", settings=("engine.processes=auto",)))
    # A run's checkpoint thinks as the run did.
    folder = tmp_path / "run" / "checkpoints" / "step-000001"
    folder.mkdir(parents=True)
    for file in checkpoint_folder("base").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    made = load_config("cpu", ["model.thinking=true"]).model_dump(mode="json")
    (tmp_path / "run" / "config.yaml").write_text(yaml.safe_dump(made))
    assert served_config(ServeOptions(str(tmp_path / "run"))).model.thinking
    assert served_config(ServeOptions(str(folder))).model.thinking
    assert not served_config(ServeOptions(str(folder), thinking=False)).model.thinking
    assert settings_told(ServeOptions(str(folder))) == "Settings from the run run: thinking."
    assert settings_told(ServeOptions(str(folder), thinking=False)) is None
    assert settings_told(ServeOptions("base")) is None
    (tmp_path / "run" / "config.yaml").write_text(yaml.safe_dump(made | {"domain": {"name": "club"}}))
    assert served_config(ServeOptions(str(folder))).model.thinking


def test_who_serves_a_tiny_model_is_told_what_it_needs(tmp_path: Path) -> None:
    hint = tiny_hint(ServeOptions("base-airline"))
    assert hint is not None
    assert "0.6" in hint and "`muarl domains show airline-generated --size tiny --json`" in hint
    large = {"hidden_size": 4096, "num_hidden_layers": 36, "num_attention_heads": 32, "intermediate_size": 12288}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen3", "vocab_size": 151936, **large}))
    assert tiny_hint(ServeOptions(str(tmp_path))) is None


def test_no_more_slots_than_memory_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers import Qwen3Config

    model = Qwen3Config(num_hidden_layers=10, num_key_value_heads=8, head_dim=128)
    one = 2 * 10 * 8 * 128 * 4 * 1000
    monkeypatch.setattr("muarl_tools.serve_model.recipe._weights", lambda _: 0)
    monkeypatch.setattr("muarl_tools.serve_model.recipe.free_memory", lambda: 4 * one * 5)
    assert fitting_slots(model, 1000, "float32", None) == 5
    assert fitting_slots(model, 1000, "bfloat16", None) == 10
    assert fitting_slots(model, 10, "float32", None) == 256
    with pytest.raises(ConfigError, match="--max-context"):
        fitting_slots(model, 100_000, "float32", None)


@pytest.fixture(scope="module")
def base() -> Iterator[tuple[TorchEngine, ChatServer]]:
    """The sampler and the server of ``muarl serve base`` with default settings, on a machine of four cores."""
    options = ServeOptions("base", slots=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("muarl.config.scale.usable_cores", lambda: 4.0)
        config = served_config(options)
        policy = load_model(config.model)
        sampler = Backend.of(config).sampler(policy)
    assert isinstance(sampler, TorchEngine)
    with serving_service(make_service(sampler, policy, config.model, config.rollout.concurrency, options)) as server:
        yield sampler, server


def test_tokens_are_told_while_they_come(base: tuple[TorchEngine, ChatServer]) -> None:
    sampler, live = base
    ask: dict[str, Any] = {"model": "base", "messages": asked(), "max_tokens": 200, "temperature": 2, "seed": 2}
    with client(live) as api:
        told: list[tuple[str, int]] = []
        for chunk in api.chat.completions.create(**ask, stream=True):
            if chunk.choices and chunk.choices[0].delta.content:
                told.append((chunk.choices[0].delta.content, sampler.stats.decode_tokens))
        made = sampler.stats.decode_tokens
        assert len(told) > 20
        assert told[0][1] < told[len(told) // 2][1] < made
        stopped = api.chat.completions.create(**ask, stop=[told[1][0].strip() or told[0][0].strip()])
        assert stopped.choices[0].finish_reason == "stop"
        assert sampler.stats.decode_tokens - made < made / 2  # a stop string ends the generation, too


def test_the_model_reads_its_tools_as_in_training_however_a_client_spells_them(
    base: tuple[TorchEngine, ChatServer],
) -> None:
    told = briefing("retail-generated", "tiny")
    functions = [tool.to_openai()["function"] for tool in told.tools]
    spellings: list[list[dict[str, Any]]] = [
        functions,
        [{"strict": False, **function} for function in functions],  # openai-agents
        [{**f, "parameters": dict(reversed(f["parameters"].items()))} for f in functions],  # inspect_ai
    ]
    prompts: list[Any] = []
    with client(base[1]) as api:
        for spelled in spellings:
            tools: Any = [{"type": "function", "function": function} for function in spelled]
            ask: Any = {"model": "base", "extra_body": {"return_token_ids": True}}
            chat = api.chat.completions.create(**ask, messages=asked("Hi", told.policy), tools=tools, max_tokens=1)
            flat: Any = [{"type": "function", **function} for function in spelled]
            response = api.responses.create(
                **ask, instructions=told.policy, input="Hi", tools=flat, max_output_tokens=1
            )
            prompts += [chat.prompt_token_ids, response.prompt_token_ids]
    assert all(prompt == prompts[0] for prompt in prompts)
    assert len(prompts[0]) < 100


def test_where_the_tools_of_a_model_are_known_from(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    def names(options: ServeOptions) -> set[str]:
        return {tool.name for tool in known_tools(options)}

    assert "cancel_pending_order" in names(ServeOptions("base"))
    assert "cancel_reservation" in names(ServeOptions("base", domain="airline-generated"))
    assert not caplog.records
    unknown = tmp_path / "run" / "checkpoints" / "step-000001"
    shutil.copytree(checkpoint_folder("base"), unknown)
    (tmp_path / "run" / "config.yaml").write_text("domain: {name: './evil.py:SHOP'}")
    assert names(ServeOptions(str(unknown))) == set()
    assert names(ServeOptions(str(unknown), domain="mcp-sqlite")) == set()
    assert "mcp-sqlite are shown to the model as clients spell them" in caplog.text


@pytest.mark.slow
def test_from_the_first_line_to_the_last(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from muarl.cli.main import main; main()", "serve", "base", "--port", "0"]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MUARL_SERVE")}
    process = subprocess.Popen(
        [*command, "--name", "mine", "--token-to", str(tmp_path / "token")],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "Loading base ...\n"
        first = process.stdout.readline()
        found = re.fullmatch(r"Serving mine at (http://127\.0\.0\.1:\d+/v1)\n", first)
        assert found, first
        for line in process.stdout:
            if line.startswith("Stop with"):
                break
        token = (tmp_path / "token").read_text().strip()
        with openai.OpenAI(base_url=found[1], api_key=token, max_retries=0) as api:
            reply = api.chat.completions.create(model="mine", messages=asked(), max_tokens=5)
            assert reply.usage and reply.usage.completion_tokens <= 5
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
        assert process.wait(30) == 0
        assert "1 request answered" in rest
        assert token not in first + rest
    finally:
        process.kill()


@pytest.mark.slow
def test_nothing_is_lost_or_mixed_up_at_200_conversations(repository: Path) -> None:
    command = [sys.executable, str(repository / "benches" / "serve_load.py"), "--turns", "3", "--max-tokens", "16"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"requests": 600' in done.stdout
    assert '"lost_or_mixed_up": 0' in done.stdout
    assert json.loads(done.stdout)["apart_by_rounding"] < 10
