"""Endpoint specs and settings: what is read, and what is refused with a clear message."""

from __future__ import annotations

import json
import pickle

import pytest

from muarl.basics.errors import ConfigError
from muarl.endpoints.config import EndpointSettings, Price, check_url, parse_endpoint


def test_spec_with_and_without_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    plain = parse_endpoint("endpoint:gpt-x")
    assert (plain.model, plain.base_url, plain.url) == ("gpt-x", None, "https://api.openai.com/v1")
    own = parse_endpoint("endpoint:Qwen/Qwen3-8B@http://localhost:8000/v1/", concurrency=4)
    assert (own.model, own.url, own.concurrency) == ("Qwen/Qwen3-8B", "http://localhost:8000/v1", 4)
    odd = parse_endpoint("endpoint:team/m@v2:free@https://host/v1")
    assert (odd.model, odd.url) == ("team/m@v2:free", "https://host/v1")


def test_base_url_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://gateway:9/v1")
    assert parse_endpoint("endpoint:m").url == "http://gateway:9/v1"
    assert parse_endpoint("endpoint:m", base_url="http://x/v1").url == "http://x/v1"


def test_prices_are_looked_up_by_model() -> None:
    prices = {"m": {"prompt": 2, "completion": 8}, "n": Price(1.0, 1.0)}
    assert parse_endpoint("endpoint:m", prices=prices).price == Price(2.0, 8.0)
    assert parse_endpoint("endpoint:n", prices=prices).price == Price(1.0, 1.0)
    assert parse_endpoint("endpoint:o", prices=prices).price is None
    with pytest.raises(ConfigError, match=r"prices\.m"):
        parse_endpoint("endpoint:m", prices={"m": {"prompt": 2.0}})


@pytest.mark.parametrize(
    "spec",
    ["gpt-x", "endpoint:", "endpoint", "http://h/v1", "endpoint:m@http://", "endpoint:m@http://h:port/v1", "agent:m"],
)
def test_bad_specs_are_refused(spec: str) -> None:
    with pytest.raises(ConfigError, match="endpoint"):
        parse_endpoint(spec)


@pytest.mark.parametrize("url", ["http://me:sesame@host/v1", "https://host/v1?api-key=sesame"])
def test_a_secret_in_the_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ConfigError, match="environment") as caught:
        EndpointSettings(model="m", base_url=url)
    assert "sesame" not in str(caught.value)


def test_what_a_server_would_never_see_is_no_part_of_an_address() -> None:
    with pytest.raises(ConfigError, match="must look like"):
        check_url("http://host/v1/ok#/../admin")  # the path of a request would go behind the mark


@pytest.mark.parametrize("field", ["concurrency", "timeout", "deadline", "attempts"])
def test_limits_must_be_positive(field: str) -> None:
    with pytest.raises(ConfigError, match=field):
        EndpointSettings(model="m", **{field: 0})  # type: ignore[arg-type]


def test_config_travels_to_other_processes() -> None:
    config = EndpointSettings(model="m", base_url="http://h/v1", price=Price(1.0, 2.0))
    assert pickle.loads(pickle.dumps(config)) == config


def test_a_cache_keeps_what_no_file_encoding_can_carry_and_survives_a_folder_that_cannot_be(tmp_path, caplog):
    from muarl.endpoints.cache import ResponseCache

    cache = ResponseCache(tmp_path / "cache")
    cache.put("abcd", {"model": "m"}, {"content": "half \ud800"})
    assert cache.get("abcd") == {"content": "half \ud800"}
    (tmp_path / "file").write_text("")
    ResponseCache(tmp_path / "file").put("abcd", {}, {})
    assert "the response is not stored" in caplog.text


@pytest.mark.parametrize(
    "spec",
    [
        *["stub@127.0.0.1:8100", "m@localhost:8000/v1", "m@localhost", "m@gpu-box:8000/v1", "m@[::1]:8000"],
        *["m@10.0.0.7", "m@api.example.com/v1", "team/m@v2:free@box:80", "m@HTTP://box/v1", "m@http:127.0.0.1"],
    ],
)
def test_an_address_without_http_is_no_model_of_openais(spec: str) -> None:
    with pytest.raises(ConfigError, match="http://"):
        parse_endpoint(f"endpoint:{spec}")


def test_an_address_without_http_is_told_how_to_write_it() -> None:
    with pytest.raises(ConfigError, match=r"write http://127\.0\.0\.1:8100/v1"):
        parse_endpoint("endpoint:stub@127.0.0.1:8100")


@pytest.mark.parametrize(
    "model", ["@cf/meta/llama-3.1-8b-instruct", "name@2024-05", "claude@20240620", "m@v1.5", "team/m@v2:free", "m@beta"]
)
def test_names_of_models_may_hold_an_at(model: str) -> None:
    assert parse_endpoint(f"endpoint:{model}").model == model
    assert parse_endpoint(f"endpoint:{model}@http://box:8000/v1").model == model


def test_a_name_that_looks_like_an_address_needs_one_beside_it() -> None:
    assert parse_endpoint("endpoint:m@release.candidate@http://box/v1").model == "m@release.candidate"


def test_more_than_model_and_address_is_said_as_json() -> None:
    extra = {"chat_template_kwargs": {"enable_thinking": False}}
    fields = {"model": "m", "base_url": "http://box/v1", "top_p": 0.8, "extra": extra, "completion_price": 2.0}
    found = parse_endpoint("endpoint:" + json.dumps(fields), concurrency=4)
    assert (found.model, found.url, found.top_p, found.extra) == ("m", "http://box/v1", 0.8, extra)
    assert (found.price, found.concurrency) == (Price(0.0, 2.0), 4)
    for wrong in (
        '{"model": "m", "attempts": "x"}',
        '{"model": "m", "prompt_price": "x"}',
        '{"model"',
        '{"model": "m", "temprature": 1}',
        '{"base_url": "http://box/v1"}',
    ):
        with pytest.raises(ConfigError, match="endpoint"):
            parse_endpoint(f"endpoint:{wrong}")
