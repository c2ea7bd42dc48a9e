"""Runs command lines over files in memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from muarl_worlds.tau.banking.shell import changing, looking, reading
from muarl_worlds.tau.banking.shell.call import CommandCall, Result
from muarl_worlds.tau.banking.shell.files import Files, ShellError
from muarl_worlds.tau.banking.shell.patterns import SECONDS, Clock
from muarl_worlds.tau.banking.shell.syntax import Command, ShellWord, parse

MOST = 1 << 23
"""Characters that a command may write."""
MOST_WORDS = 100_000

_COMMANDS: Mapping[str, Callable[[CommandCall], Result]] = {
    "cat": reading.cat, "cp": changing.copy, "cut": reading.cut, "echo": reading.echo, "egrep": looking.grep,
    "fgrep": looking.grep, "find": looking.find, "grep": looking.grep, "head": reading.head, "ls": looking.ls,
    "mkdir": changing.mkdir, "mv": changing.copy, "nl": reading.nl, "printf": reading.printf, "rm": changing.rm,
    "sed": changing.sed, "sort": reading.sort, "tac": reading.tac, "tail": reading.tail, "tee": changing.tee,
    "touch": changing.touch, "tr": reading.tr, "uniq": reading.uniq, "wc": reading.wc, "xargs": changing.xargs,
    "true": lambda call: Result(), "false": lambda call: Result(code=1), ":": lambda call: Result(),
    "pwd": lambda call: Result("/knowledge_base\n"),
    "cd": lambda call: Result() if list(call.args) in ([], ["."], ["./"]) else _no_folder(call),
}  # fmt: skip


def names() -> tuple[str, ...]:
    """The commands that there are."""
    return tuple(sorted(_COMMANDS))


class Shell:
    """A shell over files in memory; one for each conversation, as it keeps what was written.

    ``given``: texts by path, never changed. ``writes``: whether the conversation may write files of its own.
    """

    def __init__(self, given: Mapping[str, str], *, writes: bool = False, seconds: float = SECONDS) -> None:
        self.files, self.seconds = Files(given, writes=writes), seconds

    def run(self, line: str) -> Result:
        """What a command line writes, and its exit status. Never raises for what is wrong with it."""
        blocked = _escape(line)
        if blocked is not None:  # TAU2's words
            return Result("", f"Error: Command blocked - contains '{blocked}' which could escape the sandbox", 1)
        clock, result = Clock(self.seconds), Result()
        try:
            for step in parse(line):
                if step.when == "always" or (step.when == "and") == (result.code == 0):
                    one = self._pipe(step.pipe, clock)
                    result = Result(result.out + one.out, result.err + one.err, one.code)
                if len(result.out) > MOST:
                    raise ShellError("sh: too much output", 1)
        except ShellError as problem:
            return Result("", f"{problem}\n", problem.code)
        except TimeoutError:
            return Result("", f"Command timed out after {self.seconds:g} seconds", 124)
        return result

    def _pipe(self, pipe: Sequence[Command], clock: Clock) -> Result:
        passed, errors, one = None, "", Result()
        for command in pipe:
            one = self._command(command, passed, clock)
            passed, errors = one.out, errors + one.err
        return Result(one.out, errors, one.code)

    def _command(self, command: Command, stdin: str | None, clock: Clock) -> Result:
        try:
            if command.source is not None:
                stdin = self.files.read(command.source)
        except ShellError as problem:
            return Result("", f"sh: 1: cannot open {problem}\n", 2)
        words = self._words(command.words)
        result = self._run(words, command.stdin if command.stdin is not None else stdin, clock) if words else Result()
        for what, append, target in command.outputs:
            try:
                self._redirect(result, what, append, target)
            except ShellError as problem:
                return Result("", f"{result.err}sh: 1: cannot create {problem}\n", 2)
        return result

    def _redirect(self, result: Result, what: str, append: bool, target: str | None) -> None:
        if target is None:
            if what == "2":
                result.out, result.err = result.out + result.err, ""
            else:
                result.out, result.err = "", result.err + result.out
            return
        text = {"1": result.out, "2": result.err, "&": result.out + result.err}[what]
        if target != "/dev/null":
            before = self.files.texts.get(self.files.plain(target), "") if append else ""
            self.files.write(target, before + text)
        result.out = result.out if what == "2" else ""
        result.err = result.err if what == "1" else ""

    def _words(self, words: Sequence[ShellWord]) -> list[str]:
        found: list[str] = []
        for word in words:
            matches = self.files.matching(word.pattern) if word.pattern is not None else []
            found += matches or [word.text]
            if len(found) > MOST_WORDS:
                raise ShellError("sh: too many arguments", 2)
        return found

    def _run(self, words: Sequence[str], stdin: str | None, clock: Clock) -> Result:
        name, args = words[0], words[1:]
        command = _COMMANDS.get(name)
        if command is None:
            return Result("", f"sh: 1: {name}: not found (offered here: {', '.join(names())})\n", 127)
        try:
            result = command(CommandCall(name, args, stdin, self.files, clock, lambda w, s: self._run(w, s, clock)))
        except ShellError as problem:
            return Result("", f"{name}: {problem}\n", problem.code)
        if len(result.out) > MOST:
            return Result("", f"{name}: too much output\n", 1)
        return result


def _no_folder(call: CommandCall) -> Result:
    return Result("", f"sh: 1: cd: can't cd to {' '.join(call.args)}\n", 2)


def _escape(line: str) -> str | None:
    """What of a command line TAU2 refuses, as it could lead out of the folder; None if nothing does."""
    plain = re.sub(r'"[^"]*"', '""', re.sub(r"'[^']*'", '""', line))
    if ".." in plain:
        return ".."
    absolute = re.search(r"(?:^|[\s;|&])(/[a-zA-Z][^\s;|&]*)", plain)
    if absolute is not None:
        return f"absolute path: {absolute.group(1)}"
    if plain.strip().startswith("/"):
        return "absolute path at start"
    if "~" in plain:
        return "~"
    return "$HOME" if "$HOME" in plain or "${HOME}" in plain else None
