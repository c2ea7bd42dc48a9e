"""Commands that read texts and show parts of them: cat, head, tail, wc, sort, uniq, cut, tr, tac, nl, echo."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import groupby

from muarl_worlds.tau.banking.shell.call import CommandCall, Result, each
from muarl_worlds.tau.banking.shell.files import ShellError, lines_of


def cat(call: CommandCall) -> Result:
    """The files one after the other; -n numbers lines."""
    options, names = call.options("nA")
    result = each(call, names, lambda name, text: text)
    if "n" in options:
        result.out = _numbered(result.out)
    return result


def nl(call: CommandCall) -> Result:
    """Numbers lines."""
    _, names = call.options("", "b")
    result = each(call, names, lambda name, text: text)
    result.out = _numbered(result.out)
    return result


def _numbered(text: str) -> str:
    return ended_as(text, "".join(f"{number:6}\t{line}\n" for number, line in enumerate(lines_of(text), 1)))


def ended_as(text: str, lines: str) -> str:
    """Lines made of a text, whose last one has an end only if the text's has."""
    return lines if not text or text.endswith("\n") else lines.removesuffix("\n")


def tac(call: CommandCall) -> Result:
    """Lines from the last to the first."""
    return each(call, call.options("")[1], lambda name, text: _joined(list(lines_of(text))[::-1]))


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def head(call: CommandCall) -> Result:
    """The first lines (-n, all but the last ones with -n -N) or characters (-c)."""
    options, names = call.options("qv", "nc#", {"lines": "n", "bytes": "c"})
    count = options.get("c") or options.get("n") or options.get("#") or "10"
    number = call.number(count, "number of lines")
    if "c" in options:
        return _titled(call, names, lambda text: text[:number])
    return _titled(call, names, lambda text: "".join(text.splitlines(keepends=True)[:number]))


def tail(call: CommandCall) -> Result:
    """The last lines (-n, from a line on with -n +N) or characters (-c)."""
    options, names = call.options("qvf", "nc#", {"lines": "n", "bytes": "c"})
    count = options.get("c") or options.get("n") or options.get("#") or "10"
    number = abs(call.number(count, "number of lines"))
    start = number - 1 if count.startswith("+") else None

    def last(text: str) -> str:
        parts = list(text) if "c" in options else text.splitlines(keepends=True)
        return "".join(parts[start:] if start is not None else parts[len(parts) - min(number, len(parts)) :])

    return _titled(call, names, last)


def _titled(call: CommandCall, names: Sequence[str], show: Callable[[str], str]) -> Result:
    if len(names) < 2:
        return each(call, names, lambda name, text: show(text))
    result = each(call, names, lambda name, text: f"==> {name} <==\n{show(text)}\n")
    result.out = result.out.removesuffix("\n")
    return result


def wc(call: CommandCall) -> Result:
    """Lines, words and characters."""
    options, names = call.options("lwcm", long={"lines": "l", "words": "w", "bytes": "c", "chars": "m"})
    rows: list[tuple[list[int], str]] = []
    sizes: list[int] = []

    def counted(name: str, text: str) -> str:
        counts = {
            "l": text.count("\n"), "w": len(text.split()), "m": len(text), "c": len(text.encode("utf-8", "replace")),
        }  # fmt: skip
        sizes.append(counts["c"])
        rows.append(([counts[o] for o in "lwmc" if o in (options or "lwc")], "" if name == "-" else name))
        return ""

    result = each(call, names, counted)
    if len(rows) > 1:
        rows.append(([sum(column) for column in zip(*(counts for counts, _ in rows), strict=True)], "total"))
    columns = len(rows[0][0]) if rows else 1
    width = 1 if len(rows) < 2 and columns < 2 else len(str(sum(sizes))) if names else 7  # as GNU's wc has it
    result.out = "".join(" ".join([*(f"{c:>{width}}" for c in counts), name]).rstrip() + "\n" for counts, name in rows)
    return result


def sort(call: CommandCall) -> Result:
    """Lines in order: -r, -n, -u, -f, -h, -k N, -t C."""
    options, names = call.options("rnufhbV", "kt", {"reverse": "r", "numeric-sort": "n", "unique": "u", "key": "k"})
    result = each(call, names, lambda name, text: text if text.endswith("\n") or not text else f"{text}\n")
    key_of = re.match(r"\d+", options.get("k", ""))
    column = int(key_of.group()) - 1 if key_of else None
    numeric = bool({"n", "h", "V"} & set(options)) or "n" in options.get("k", "")

    def key(line: str) -> tuple[float, str]:
        part = line
        if column is not None:
            part = options.get("t", " ").join((line.split(options["t"]) if "t" in options else line.split())[column:])
        part = part.lower() if "f" in options else part
        number = re.match(r"\s*-?\d{1,15}(\.\d{1,15})?", part) if numeric else None
        return (float(number.group()) if number else 0.0, line if numeric else part)

    lines = sorted(lines_of(result.out), key=key, reverse="r" in options or "r" in options.get("k", ""))
    result.out = _joined(list(dict.fromkeys(lines)) if "u" in options else lines)
    return result


def uniq(call: CommandCall) -> Result:
    """Equal lines that follow each other, once: -c, -d, -u, -i."""
    options, names = call.options("cdui", long={"count": "c", "repeated": "d", "unique": "u"})
    result = each(call, names[:1], lambda name, text: text)
    rows = []
    for _, same in groupby(lines_of(result.out), key=str.lower if "i" in options else None):
        lines = list(same)
        if ("d" not in options or len(lines) > 1) and ("u" not in options or len(lines) == 1):
            rows.append(f"{len(lines):7} {lines[0]}" if "c" in options else lines[0])
    result.out = _joined(rows)
    return result


def cut(call: CommandCall) -> Result:
    """Fields (-d C -f LIST) or characters (-c LIST) of each line."""
    options, names = call.options("s", "dfcb", {"delimiter": "d", "fields": "f", "characters": "c"})
    chosen = options.get("f") or options.get("c") or options.get("b")
    if not chosen:
        raise ShellError("you must specify a list of bytes, characters, or fields")
    spans = [_span(call, one) for one in chosen.split(",")]
    separator = options.get("d", "\t") if "f" in options else ""

    def part(line: str) -> str:
        if separator and separator not in line:
            return line
        pieces = line.split(separator) if separator else list(line)
        return separator.join(p for n, p in enumerate(pieces, 1) if any(low <= n <= high for low, high in spans))

    return each(call, names, lambda name, text: _joined([part(line) for line in lines_of(text)]))


def _span(call: CommandCall, text: str) -> tuple[int, int]:
    low, dash, high = text.partition("-")
    first = call.number(low, "list") if low else 1
    return first, (call.number(high, "list") if high else 1 << 40) if dash else first


_CLASSES = {
    "[:lower:]": "a-z", "[:upper:]": "A-Z", "[:digit:]": "0-9", "[:alpha:]": "A-Za-z", "[:alnum:]": "A-Za-z0-9",
    "[:space:]": " \\t\\n\\r", "[:blank:]": " \\t", "[:punct:]": "!-/:-@[-`{-~",
}  # fmt: skip


def tr(call: CommandCall) -> Result:
    """Replaces, deletes (-d) or squeezes (-s) characters."""
    options, sets = call.options("dsc")
    if not 1 <= len(sets) <= 2 or (len(sets) == 1 and not {"d", "s"} & set(options)):
        raise ShellError("missing operand")
    text, first = call.stdin or "", _characters(sets[0])
    if "c" in options:
        first = [c for c in dict.fromkeys(text) if c not in set(first)]
    if "d" in options:
        return Result("".join(c for c in text if c not in set(first)))
    if len(sets) == 2:
        second = _characters(sets[1]) or [""]
        text = text.translate({ord(c): second[min(n, len(second) - 1)] for n, c in reversed(list(enumerate(first)))})
        first = second
    if "s" in options:
        text = "".join(c for n, c in enumerate(text) if not (n and c == text[n - 1] and c in set(first)))
    return Result(text)


def _characters(text: str) -> list[str]:
    for name, stands_for in _CLASSES.items():
        text = text.replace(name, stands_for)
    plain = unescaped(text)
    found: list[str] = []
    at = 0
    while at < len(plain):
        if plain[at + 1 : at + 2] == "-" and at + 2 < len(plain) and 0 <= ord(plain[at + 2]) - ord(plain[at]) < 1000:
            found += map(chr, range(ord(plain[at]), ord(plain[at + 2]) + 1))
            at += 3
        else:
            found.append(plain[at])
            at += 1
    return found


def unescaped(text: str) -> str:
    """``\\n``, ``\\t`` and so on as what they mean."""
    meant = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}
    return re.sub(r"\\([ntr\\])", lambda found: meant[found.group(1)], text)


def echo(call: CommandCall) -> Result:
    """Its arguments: -n without a line's end, -e with escapes."""
    args, options = list(call.args), ""
    while args and re.fullmatch(r"-[neE]+", args[0]):
        options += args.pop(0)[1:]
    text = " ".join(args)
    return Result((unescaped(text) if "e" in options else text) + ("" if "n" in options else "\n"))


def printf(call: CommandCall) -> Result:
    """A text with ``%s`` and ``%d``."""
    if not call.args:
        raise ShellError("usage: printf format [arguments]", 2)
    given = iter(call.args[1:])
    return Result(re.sub(r"%([sd%])", lambda f: "%" if f[1] == "%" else next(given, ""), unescaped(call.args[0])))
