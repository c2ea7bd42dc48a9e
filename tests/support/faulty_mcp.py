"""A small MCP server, written by hand so that it can do everything wrong. ``python faulty_mcp.py MODE FOLDER``.

Its tools: ``look`` (reads the file state.txt), ``put`` (writes it), ``fail`` (answers with an error), ``big`` (a long
text), ``picture`` (no text), ``structured`` (structured content only), ``pid``, and ``break``, which does what MODE
says: hang, die, flood (one endless line), lines (endless lines), noise (standard error), garbage (endless text that is
no message), change (its tools, with a notification), nonsense (a result that is none). MODE once:X does so only once
per folder. MODE banner prints a line before it begins, mute never says hello, quiet-change changes its tools unsaid.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

MODE, FOLDER = sys.argv[1], Path(sys.argv[2])
STATE = FOLDER / "state.txt"
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
EMPTY: dict[str, Any] = {"type": "object", "properties": {}}
READS = {"readOnlyHint": True}
TOOLS = [
    {"name": "look", "description": "Look. Long.", "inputSchema": EMPTY, "annotations": READS},
    {"name": "put", "description": "Put.", "inputSchema": TEXT, "annotations": {"readOnlyHint": False}},
    {"name": "fail", "description": "Fail.", "inputSchema": EMPTY, "annotations": READS},
    {"name": "big", "description": "Big.", "inputSchema": EMPTY, "annotations": READS},
    {"name": "picture", "description": "Picture.", "inputSchema": EMPTY, "annotations": READS},
    {"name": "structured", "description": "Structured.", "inputSchema": EMPTY, "annotations": READS},
    {"name": "pid", "description": "Pid.", "inputSchema": EMPTY, "annotations": READS},
    {"name": "break", "description": "Break.", "inputSchema": EMPTY, "annotations": READS},
    {"name": "break_write", "description": "Break.", "inputSchema": EMPTY},
]


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], **more}


def broken(mode: str) -> dict[str, Any]:
    if mode.startswith("once:"):
        mark = FOLDER / "once"
        if mark.exists():
            return text("mended")
        mark.touch()
        mode = mode.removeprefix("once:")
    if mode == "hang":
        time.sleep(600)
    if mode == "die":
        sys.stderr.write("Traceback: out of cheese\n")
        sys.stderr.flush()
        os._exit(3)
    while mode in ("flood", "lines", "noise", "garbage"):
        words = {"flood": "x" * 65536, "noise": "noise\n" * 9999, "garbage": "not json\n"}.get(mode)
        if words is None:
            send({"method": "notifications/message", "params": {"level": "info", "data": "y" * 9999}})
        else:
            stream = sys.stderr if mode == "noise" else sys.stdout
            stream.write(words)
            stream.flush()
    if mode == "change":
        TOOLS[0]["inputSchema"] = TEXT
        send({"method": "notifications/tools/list_changed"})
        return text("changed")
    if mode == "nonsense":
        return {"content": "not a list"}
    return text("whole")


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if name == "look":
        return text(STATE.read_text() if STATE.exists() else f"nothing in {FOLDER}")
    if name == "put":
        STATE.write_text(arguments["text"])
        return text("put")
    if name == "fail":
        return text("it does not work", isError=True)
    if name == "big":
        return text("z" * 5000)
    if name == "picture":
        return {"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]}
    if name == "structured":
        return {"content": [], "structuredContent": {"a": 1}}
    if name == "pid":
        return text(str(os.getpid()))
    return broken(MODE)


def main() -> None:
    if MODE == "mute":
        time.sleep(600)
    if MODE == "banner":
        sys.stdout.write("Welcome to the faulty server!\n")
    for line in sys.stdin:
        request = json.loads(line)
        method = request["method"]
        if "id" not in request:
            continue
        if method == "initialize":
            version = request["params"]["protocolVersion"]
            about = {"name": "faulty", "version": "1"}
            result: dict[str, Any] = {
                "protocolVersion": version, "serverInfo": about, "capabilities": {"tools": {"listChanged": True}},
            }  # fmt: skip
        elif method == "tools/list":
            mark = FOLDER / "listed"
            if MODE == "quiet-change" and mark.exists():
                TOOLS[:] = TOOLS[1:]
            if MODE == "quiet-change":
                mark.touch()
            result = {"tools": TOOLS}
        elif method == "tools/call":
            result = call(request["params"]["name"], request["params"].get("arguments") or {})
        else:
            send({"id": request["id"], "error": {"code": -32601, "message": f"no method {method}"}})
            continue
        send({"id": request["id"], "result": result})


if __name__ == "__main__":
    main()
