"""What a command line says: words, pipes and redirections. Nothing is run here."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from muarl_worlds.tau.banking.shell.files import ShellError

LONGEST = 20_000
"""Characters of a command line."""

_OPERATORS = ("&&", "||", ";;", ">>", "<<", "|", ";", "&", ">", "<", "\n", "(", ")")
_KEYWORDS = frozenset({"for", "while", "until", "if", "case", "do", "done", "then", "fi", "function", "{", "}", "!"})
_HERE = re.compile(r"<<-?[ \t]*(['\"]?)(\w+)\1")


@dataclass(frozen=True)
class ShellWord:
    """A word of a command. ``text``: without its quotes; ``pattern``: as a wildcard, None if it is none."""

    text: str
    pattern: str | None = None


@dataclass
class Command:
    """One command of a pipe. ``outputs``: redirections in order, as (what, append, file): what is 1, 2 or "&" for
    both; file None for ``2>&1`` (1 into 2: ``>&2`` has what 1). ``stdin``: the text of a here document."""

    words: list[ShellWord] = field(default_factory=list)
    outputs: list[tuple[str, bool, str | None]] = field(default_factory=list)
    source: str | None = None
    stdin: str | None = None


@dataclass
class ShellPipe:
    """A pipe, and on what it depends: "always", or that the one before succeeded ("and") or failed ("or")."""

    when: str
    pipe: list[Command]


def parse(line: str) -> list[ShellPipe]:
    """The steps of a command line. ShellError for what is not understood."""
    if len(line) > LONGEST:
        raise ShellError("sh: the command is too long", 2)
    if "\0" in line:
        raise ShellError("sh: the command holds a null character", 2)
    line, here = _here_documents(line)
    steps, pipe, command, when = list[ShellPipe](), list[Command](), Command(), "always"

    def end_command(operator: str) -> None:
        nonlocal command
        if command.words or command.outputs:
            pipe.append(command)
        elif operator in ("|", "&&", "||") or pipe:
            raise ShellError(f'sh: 1: Syntax error: "{operator.strip() or "newline"}" unexpected', 2)
        command = Command()

    def end_pipe(operator: str, following: str) -> None:
        nonlocal pipe, when
        end_command(operator)
        if pipe:
            steps.append(ShellPipe(when, pipe))
        pipe, when = [], following

    tokens = _tokens(line)
    at = 0
    while at < len(tokens):
        token = tokens[at]
        at += 1
        if isinstance(token, ShellWord):
            if not command.words and token.text in _KEYWORDS:
                raise ShellError(f"sh: {token.text!r} is not offered here: only plain commands and pipes are", 2)
            command.words.append(token)
        elif token == "|":
            end_command(token)
        elif token in (";", "\n"):
            end_pipe(token, "always")
        elif token in ("&&", "||"):
            end_pipe(token, "and" if token == "&&" else "or")
        elif token.startswith("here"):
            command.stdin = here[int(token[4:])]
        elif token[-1] in "<>":
            at = _redirect(command, token, tokens, at)
        elif token.endswith((">&1", ">&2")):
            command.outputs.append((token[0] if token[0] in "12" else "1", False, None))
        else:
            raise ShellError(f"sh: {token!r} is not offered here: only plain commands and pipes are", 2)
    end_pipe("newline", "always")
    return steps


def _redirect(command: Command, token: str, tokens: list[ShellWord | str], at: int) -> int:
    target = tokens[at] if at < len(tokens) else None
    if not isinstance(target, ShellWord):
        raise ShellError("sh: 1: Syntax error: redirection without a file", 2)
    if token == "<":
        command.source = target.text
    else:
        command.outputs.append((token[0] if token[0] in "12&" else "1", token.endswith(">>"), target.text))
    return at + 1


def _here_documents(line: str) -> tuple[str, list[str]]:
    """The line with a mark in place of each here document, and their texts."""
    found: list[str] = []
    while (start := _HERE.search(line)) is not None:
        rest_of_line, newline, below = line[start.end() :].partition("\n")
        body: list[str] = []
        rows = below.split("\n") if newline else []
        while rows and rows[0].strip() != start.group(2):
            body.append(rows.pop(0))
        after = "\n".join(rows[1:])
        line = f"{line[: start.start()]} \0{len(found)}\0 {rest_of_line}\n{after}"
        found.append("".join(f"{row}\n" for row in body))
    return line, found


def _tokens(line: str) -> list[ShellWord | str]:
    """Words, and operators as plain strings; a here document is "here" and its number."""
    found: list[ShellWord | str] = []
    at = 0
    while at < len(line):
        c = line[at]
        if c in " \t\r":
            at += 1
        elif c == "#":
            at = line.find("\n", at) if "\n" in line[at:] else len(line)
        elif c == "\0":
            end = line.index("\0", at + 1)
            found.append("here" + line[at + 1 : end])
            at = end + 1
        elif (redirect := re.match(r"(?:[12]?>&[12](?![\w.])|[12&]?>>?|<(?!<))", line[at:])) is not None:
            found.append(redirect.group())
            at += redirect.end()
        elif (operator := next((o for o in _OPERATORS if line.startswith(o, at)), None)) is not None:
            found.append(operator)
            at += len(operator)
        else:
            word, at = _word(line, at)
            found.append(word)
    return found


def _word(line: str, at: int) -> tuple[ShellWord, int]:
    text, pattern, wild = [], [], False

    def add(c: str, quoted: bool) -> None:
        nonlocal wild
        text.append(c)
        special = c in "*?["
        wild = wild or (special and not quoted)
        pattern.append(f"[{c}]" if special and quoted else c)

    while at < len(line) and line[at] not in " \t\r\n|;&<>()\0":
        c = line[at]
        if c == "'":
            end = line.find("'", at + 1)
            if end < 0:
                raise ShellError("sh: 1: Syntax error: Unterminated quoted string", 2)
            for inner in line[at + 1 : end]:
                add(inner, True)
            at = end + 1
        elif c == '"':
            at += 1
            while at < len(line) and line[at] != '"':
                if line[at] == "\\" and line[at + 1 : at + 2] in ("$", "`", '"', "\\"):
                    at += 1
                else:
                    _refuse_expansion(line, at)
                add(line[at], True)
                at += 1
            if at >= len(line):
                raise ShellError("sh: 1: Syntax error: Unterminated quoted string", 2)
            at += 1
        elif c == "\\":
            if line[at + 1 : at + 2] != "\n":
                add(line[at + 1 : at + 2] or "\\", True)
            at += 2
        else:
            _refuse_expansion(line, at)
            add(c, False)
            at += 1
    return ShellWord("".join(text), "".join(pattern) if wild else None), at


def _refuse_expansion(line: str, at: int) -> None:
    if line[at] == "`" or re.match(r"\$[A-Za-z_({@#*?0-9]", line[at : at + 2]):
        raise ShellError("sh: variables and substitutions ($..., `...`) are not offered here", 2)
