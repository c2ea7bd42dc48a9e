"""Where servers listen, who they are to their clients, and their tokens."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from muarl.basics.errors import ConfigError
from muarl.basics.web.addresses import ServerAddress, listen, save_token, split_host, token_for

TOKEN = "MUARL_TEST_TOKEN"


def test_an_address_that_is_taken() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"--port {port}.*choose another port"):
            listen("127.0.0.1", port)
    with pytest.raises(ConfigError, match="--host"):
        listen("no.such.host.invalid", 0)


def test_tokens() -> None:
    made_up = {token_for("127.0.0.1", "", TOKEN) for _ in range(3)}
    assert len(made_up) == 3 and min(map(len, made_up)) >= 24
    assert token_for("localhost", "short", TOKEN) == "short"
    assert token_for("0.0.0.0", "x" * 16, TOKEN) == "x" * 16
    with pytest.raises(ConfigError, match="in MUARL_TEST_TOKEN, or name a file with it in MUARL_TEST_TOKEN_FILE"):
        token_for("0.0.0.0", "", TOKEN)
    with pytest.raises(ConfigError, match="16 characters"):
        token_for("192.168.0.1", "short", TOKEN)


def test_a_token_in_a_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old")
    file.chmod(0o644)
    save_token(file, "new")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("new\n", 0o600)
    with pytest.raises(ConfigError, match="--token-to"):
        save_token(tmp_path / "no" / "folder", "new")


def test_the_parts_of_a_host_header() -> None:
    assert split_host("LocalHost:80") == ("localhost", 80) and split_host("[::1]") == ("::1", None)
    for odd in ("", ":", "a@b", "[::1", "[::1]evil", "a:99999", "a:80,b", "a b", "a:-1"):
        assert split_host(odd) is None, odd


def test_the_names_of_a_server_on_loopback() -> None:
    here = ServerAddress("127.0.0.1", 80, names=("models.example",))
    assert here.loopback and here.url == "http://127.0.0.1:80"
    assert all(here.is_host(name) for name in ("127.0.0.1", "localhost:9", "[::1]:80", "LOCALHOST"))
    assert not any(here.is_host(name) for name in ("models.example", "10.0.0.1", socket.gethostname() + ".evil", ""))
    strict = ServerAddress("127.0.0.1", 80, own_port=True)
    assert strict.is_host("localhost:80") and not strict.is_host("localhost") and not strict.is_host("localhost:81")


def test_the_names_of_a_server_that_others_can_reach() -> None:
    open_ = ServerAddress("0.0.0.0", 80, names=("Models.example",))
    assert not open_.loopback and open_.url == "http://127.0.0.1:80" and ServerAddress("::", 1).url == "http://[::1]:1"
    assert all(open_.is_host(name) for name in ("models.example", "10.0.0.1:5", socket.gethostname(), "localhost"))
    assert not open_.is_host("evil.example") and not open_.is_host("")
    assert ServerAddress("0.0.0.0", 80, names=None).is_host("any.example")


def test_the_origin_of_a_page() -> None:
    here = ServerAddress("127.0.0.1", 80, own_port=True)
    assert here.is_origin("http://localhost:80")
    for foreign in ("null", "", "http://evil.example", "http://localhost:81", "file://", "http://localhost:80@evil"):
        assert not here.is_origin(foreign), foreign
