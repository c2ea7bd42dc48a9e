"""The server: on this machine alone, for who has the token, GET and nothing else; and the command that starts it."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from muarl.basics.errors import MuarlError
from muarl.cli.main import app
from muarl.observe.rundir import RunDirectory
from muarl_tools.view.runs import Library
from muarl_tools.view.server import ViewServer
from support.viewing import TOKEN, indexed, serving


def ask(
    server: ViewServer,
    path: str,
    *,
    method: str = "GET",
    token: str | None = TOKEN,
    host: str | None = None,
    **headers: str,
) -> tuple[int, dict[str, str], str]:
    """One request: status, headers, body."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    connection.putrequest(method, path, skip_host=True)
    connection.putheader("Host", f"127.0.0.1:{server.port}" if host is None else host)
    if token is not None:
        connection.putheader("Cookie", f"other=1; {server.cookie}={token}")
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, {k.lower(): v for k, v in answer.getheaders()}, body


def test_without_the_token_there_is_nothing(library: Library) -> None:
    with serving(library) as server:
        for path in ("/", "/runs/mine/episodes", "/view.css", "/view.js", "/nothing", "//evil.example/"):
            for token in (None, "", "wrong", TOKEN + "x", "é"):
                status, _, body = ask(server, path, token=token)
                assert status == 403 and "mine" not in body and TOKEN not in body
        assert ask(server, "/?token=wrong", token=None)[0] == 403
        assert ask(server, "/?token=", token=None)[0] == 403


def test_the_token_becomes_a_cookie_and_leaves_the_address(library: Library) -> None:
    with serving(library) as server:
        assert f"token={TOKEN}" in server.address
        status, headers, body = ask(server, f"/runs/mine/episodes?stage=after&token={TOKEN}", token=None)
        assert status == 303 and headers["location"] == "/runs/mine/episodes?stage=after" and body == ""
        cookie = headers["set-cookie"]
        assert cookie.startswith(f"{server.cookie}={TOKEN};") and "HttpOnly" in cookie and "SameSite=" in cookie
        for path in ("//evil.example/x", "/\\evil.example", "///evil.example"):  # never a way to elsewhere
            place = ask(server, f"{path}?token={TOKEN}", token=None)[1]["location"]
            assert re.match(r"/(?![/\\])", place)


def test_every_server_has_a_token_of_its_own(library: Library) -> None:
    with ViewServer(library, port=0) as one, ViewServer(library, port=0) as other:
        assert len(one.token) >= 32 and one.token != other.token and one.cookie != other.cookie


def test_names_that_others_point_here_are_refused(library: Library) -> None:
    with serving(library) as server:
        port = server.port
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", f"LOCALHOST:{port}"):
            assert ask(server, "/", host=host)[0] == 200
        for host in (
            "evil.example", f"evil.example:{port}", "localhost", f"localhost:{port + 1}", f"localhost.evil.test:{port}",
            f"10.0.0.1:{port}", f"{socket.gethostname()}.evil:{port}", "", ":", f"127.0.0.1:{port}@evil.example",
            f"localhost@evil.example:{port}", f"[::1]evil:{port}", f"[::1:{port}", f"localhost:80,evil:{port}",
        ):  # fmt: skip
            assert ask(server, "/", host=host)[0] == 421, host


def _reached(server: ViewServer) -> str:
    """The address at which a client found it."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
        return str(client.getpeername()[0])


def test_it_listens_on_loopback_unless_told_otherwise(library: Library) -> None:
    with ViewServer(library, port=0) as server:
        assert server.loopback and _reached(server) == "127.0.0.1"
    with ViewServer(library, port=0, host="0.0.0.0") as server:
        assert not server.loopback and server.where.is_host(f"192.168.1.5:{server.port}")
        assert not server.where.is_host(f"evil.example:{server.port}")


def test_nothing_but_get_is_answered(library: Library) -> None:
    with serving(library) as server:
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
            status, headers, _ = ask(server, "/", method=method, Content_Length="0")
            assert status == 405 and headers["allow"] == "GET, HEAD"
        status, headers, body = ask(server, "/", method="HEAD")
        assert status == 200 and body == "" and int(headers["content-length"]) > 1000


def test_pages_may_neither_run_nor_load_anything_foreign(library: Library) -> None:
    with serving(library) as server:
        for path in ("/", "/runs/mine/episodes", "/nothing", "/view.js"):
            _, headers, _ = ask(server, path)
            policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
            assert policy["default-src"] == "'none'" and policy["script-src"] == policy["connect-src"] == "'self'"
            assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
            assert "unsafe-inline" not in policy["script-src"] + policy["style-src"]
            assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
            assert headers["cache-control"] == "no-store" and "access-control-allow-origin" not in headers
        for path in ("/", "/runs/mine/tasks"):
            body = ask(server, path)[2]
            assert not re.search(r"(https?:)?//[a-z]", body.replace("http://www.w3.org/2000/svg", ""))


def test_odd_requests_do_no_harm(library: Library) -> None:
    with serving(library) as server:
        for path in (
            "/%00",
            "/../../etc/passwd",
            "/runs/mine/episodes/%2e%2e%2f",
            "/runs/%ff",
            "/?a=" + "x" * 5000,
            "/?" + "a=1&" * 500,
        ):
            assert ask(server, path)[0] in (200, 400, 404)
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as raw:
            raw.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: x\r\n\xff: y\r\n\r\n")
            assert raw.recv(100)
        assert ask(server, "/")[0] == 200


def test_a_page_that_cannot_be_made_says_so(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> str:
        raise RuntimeError("<b>broken</b>")

    monkeypatch.setattr("muarl_tools.view.server.page_of", broken)
    with serving(library) as server:
        status, _, body = ask(server, "/")
        assert status == 500 and "&lt;b&gt;broken" in body and "<b>" not in body


def test_a_taken_port_is_said_or_gone_round(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    with ViewServer(library, port=0) as first:
        with pytest.raises(MuarlError, match="--port"):
            ViewServer(library, port=first.port)
        monkeypatch.setattr("muarl_tools.view.server.PORT", first.port)
        with ViewServer(library) as second:
            assert second.port != first.port


def test_the_command_serves_until_it_is_stopped(finished: RunDirectory, tmp_path: Path) -> None:
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    command = [
        sys.executable,
        "-c",
        "from muarl.cli.main import main; main()",
        "view",
        str(finished.path),
        "--port",
        "0",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"Open http://127\.0\.0\.1:(\d+)/\?token=([\w-]{20,})\n", line)
        assert found is not None, line
        connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=30)
        deadline = time.monotonic() + 60
        while True:
            connection.request("GET", "/", headers={"Cookie": f"muarl_view_{found[1]}={found[2]}"})
            answer = connection.getresponse()
            body = answer.read().decode()
            assert answer.status == 200
            if "152" in body:  # indexed meanwhile
                break
            assert time.monotonic() < deadline
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0 and "Traceback" not in errors
    finally:
        process.kill()
        process.wait()
    assert list((tmp_path / "muarl" / "view").glob("*.sqlite"))


def test_the_command_says_what_is_wrong(tmp_path: Path, finished: RunDirectory) -> None:
    result = CliRunner().invoke(app, ["view", str(tmp_path / "nothing")])
    assert result.exit_code == 2 and "There is no run at" in result.output
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "diary.txt").write_text("dear diary")
    result = CliRunner().invoke(app, ["view", str(finished.path), "--export", str(tmp_path / "pages")])
    assert result.exit_code == 2 and "holds other files" in result.output


def test_a_viewer_of_two_runs(finished: RunDirectory, tmp_path: Path) -> None:
    with serving(indexed(tmp_path, finished.path, finished.path)) as server:
        assert "2 runs" in ask(server, "/")[2]
        assert ask(server, "/runs/mine-2/tasks")[0] == 200
