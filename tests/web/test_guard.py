"""Which requests reach an application behind the guard."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from muarl.basics.web import guard as module
from muarl.basics.web.addresses import ServerAddress
from muarl.basics.web.guard import Access, Guard

TOKEN = "open-sesame"
KEY = {"authorization": f"Bearer {TOKEN}"}
HERE = ServerAddress("127.0.0.1", 80)


class Echo:
    """Answers with the request's body, and counts what reaches it."""

    def __init__(self) -> None:
        self.reached = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.reached += 1
        body = await Request(scope, receive).body()
        await PlainTextResponse(body or b"nothing")(scope, receive, send)


async def ask(echo: Echo, path: str = "/", *, method: str = "GET", access: Any = None, **more: Any) -> httpx.Response:
    """One request to the application behind its guard."""
    transport = httpx.ASGITransport(Guard(echo, access or Access(HERE, TOKEN, open=("/open",), body=10)))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return await client.request(method, path, **more)


async def test_a_bearer_token_opens_and_nothing_else_does() -> None:
    echo = Echo()
    for wrong in ({}, {"authorization": TOKEN}, {"authorization": f"Basic {TOKEN}"}, {"cookie": f"token={TOKEN}"}):
        answer = await ask(echo, headers=wrong)
        assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer"
    assert (await ask(echo, f"/?token={TOKEN}")).status_code == 401  # an address is no place for it without cookies
    assert echo.reached == 0
    assert (await ask(echo, headers=KEY)).text == "nothing"
    assert (await ask(echo, "/open")).text == "nothing"
    assert (await ask(echo, "/open/more")).status_code == 401


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1@evil.example", "10.0.0.1", "localhost:80,evil"])
async def test_a_name_pointed_at_this_machine_is_refused_even_with_the_token(host: str) -> None:
    echo = Echo()
    for path in ("/", "/open"):
        assert (await ask(echo, path, headers=KEY | {"host": host})).status_code == 421
    assert echo.reached == 0


async def test_pages_of_other_sites_are_refused_even_with_the_token() -> None:
    echo = Echo()
    for origin in ("http://evil.example", "null", "https://127.0.0.1.evil.example"):
        assert (await ask(echo, headers=KEY | {"origin": origin})).status_code == 403
    assert echo.reached == 0
    answer = await ask(echo, headers=KEY | {"origin": "http://localhost:80"})
    assert answer.status_code == 200 and "access-control-allow-origin" not in answer.headers


async def test_a_body_within_the_limit_arrives_whole_and_no_other() -> None:
    async def pieces(count: int) -> AsyncIterator[bytes]:  # of a length that is not told
        for _ in range(count):
            yield b"12345"

    echo = Echo()
    post = {"method": "POST", "headers": KEY}
    assert (await ask(echo, content=b"1234567890", **post)).text == "1234567890"
    assert (await ask(echo, content=pieces(2), **post)).text == "1234512345"
    assert echo.reached == 2
    for large in (b"x" * 11, pieces(3)):
        assert (await ask(echo, content=large, **post)).status_code == 413
    assert (await ask(echo, "/open", method="POST", content=b"x")).status_code == 413  # strangers may send nothing
    assert echo.reached == 2


async def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BODY_SECONDS", 0.01)

    async def never() -> dict[str, Any]:
        await module.asyncio.Event().wait()
        raise AssertionError("unreachable")

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {TOKEN}".encode())]
    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": headers}
    echo = Echo()
    await Guard(echo, Access(HERE, TOKEN))(scope, never, send)
    assert sent[0]["status"] == 408 and echo.reached == 0


async def test_a_browser_gets_the_token_as_a_cookie() -> None:
    echo, access = Echo(), Access(HERE, TOKEN, cookie="mine")
    assert (await ask(echo, access=access, headers=KEY)).status_code == 401  # the cookie is what counts
    assert (await ask(echo, "/?token=wrong", access=access)).status_code == 401
    entered = await ask(echo, f"/a?b=1&token={TOKEN}", access=access)
    assert (entered.status_code, entered.headers["location"]) == (303, "/a?b=1")
    assert entered.headers["cache-control"] == "no-store" and echo.reached == 0
    cookie = entered.headers["set-cookie"].split(";")[0]
    assert (await ask(echo, access=access, headers={"cookie": cookie})).status_code == 200


async def test_every_answer_has_the_headers_unless_it_sets_them() -> None:
    class Cached(Echo):
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            await PlainTextResponse("", headers={"Cache-Control": "max-age=5"})(scope, receive, send)

    for headers in ({}, KEY):
        answer = await ask(Echo(), headers=headers)
        assert answer.headers["cache-control"] == "no-store" and answer.headers["x-content-type-options"] == "nosniff"
    assert (await ask(Cached(), headers=KEY)).headers.get_list("cache-control") == ["max-age=5"]


async def test_every_answer_has_an_id_that_the_log_names(caplog: pytest.LogCaptureFixture) -> None:
    async def failing(scope: Scope, receive: Receive, send: Send) -> None:
        status = int(scope["path"].strip("/").split("\n")[0])
        await PlainTextResponse("no", status)(scope, receive, send)

    caplog.set_level("INFO", logger="muarl.basics.web.guard")
    answers = [await ask(failing, f"/{status}", headers=KEY) for status in (200, 400, 502, 503)]  # type: ignore[arg-type]
    answers += [await ask(failing, "/200"), await ask(failing, "/502%0aa?secret=1", headers=KEY)]  # type: ignore[arg-type]
    ids = [answer.headers["x-request-id"] for answer in answers]
    assert len(set(ids)) == 6 and all(len(i) > 20 for i in ids)
    told = [(record.levelname, record.getMessage()) for record in caplog.records]
    expected = [("/200", 200), ("/400", 400), ("/502", 502), ("/503", 503), ("/200", 401), ("/502%0Aa", 502)]
    assert told == [
        ("WARNING" if status == 502 else "INFO", f"GET {path}: {status}, request {request}")
        for (path, status), request in zip(expected, ids, strict=True)
    ]
