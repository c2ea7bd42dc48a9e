"""The scripted agent of the repository."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from muarl.domains.mcp.scenario import read_files
from muarl.domains.mcp.scenarios.git.tasks import KINDS, PROTECTED, writes_of
from muarl.domains.mcp.serving import DeskExpert, Say, Write
from muarl.domains.mcp.talk import Frame

TALK = read_files(Path(__file__).parent).talk
_CHANGE = re.compile(r"^\t(?:(?:modified|new file|deleted|renamed): +)?(\S+)$", re.MULTILINE)


class GitExpert(DeskExpert):
    """Serves one conversation about the repository."""

    talk = TALK
    guesses: ClassVar[Mapping[str, str]] = {"message": "Update the files", "base": "main"}

    def serve(self, frame: Frame) -> Write | Say:
        """What a request needs."""
        step: Write | Say = getattr(self, f"_{frame.intent}")(frame)
        return step

    def _question(self, frame: Frame) -> Say:
        field, where = self.need(frame, "field"), self.need(frame, "where")
        seen = self.look("show", revision=where)
        if seen.error:
            self.gone(frame, "where", f"there is no branch {where}", options=self._branches()[1])
        author = re.search(r"^Author: (.+?) <", seen.text, re.MULTILINE)
        message = re.search(r"^ {4}(.+)$", seen.text, re.MULTILINE)
        found = author if field == "author" else message
        return Say(f"The {field} of the last commit on {where} is {found[1] if found else 'not known'}.")

    def _commit(self, frame: Frame) -> Write:
        branch, staged, changed = self._status()
        if branch in PROTECTED:
            self.refuse(frame, f"nothing is committed to {branch}, which is protected")
        if "file" not in frame.slots and "named" in frame.slots:
            name = frame.slots.pop("named")
            paths = [p for p in (*staged, *changed) if p.endswith(f"/{name}")]
            frame.slots |= {"file": paths[0]} if len(paths) == 1 else {}
        file = self.need(frame, "file")
        if file not in (*staged, *changed):
            self.gone(frame, "file", f"{file} has no changes", "Which of the changed files do you mean?", changed)
        self.need(frame, "message")
        return self.propose(frame, *writes_of("commit", frame.slots), branch=branch)

    def _branch(self, frame: Frame) -> Write:
        branch = self.need(frame, "branch")
        if branch.split("/")[0] not in KINDS:
            self.refuse(frame, f"a branch must be called {', '.join(f'{k}/...' for k in KINDS)}")
        _, names = self._branches()
        if branch in names:
            self.gone(frame, "branch", f"the branch {branch} already exists", "Which other name should I use?")
        base = self.need(frame, "base")
        if base not in names:
            self.gone(frame, "base", f"there is no branch {base}", options=names)
        return self.propose(frame, *writes_of("branch", frame.slots))

    def _switch(self, frame: Frame) -> Write:
        _, staged, changed = self._status()
        if staged or changed:
            self.refuse(frame, f"there are changes in {' and '.join([*staged, *changed])}")
        branch = self.need(frame, "branch")
        _, names = self._branches()
        if branch not in names:
            self.gone(frame, "branch", f"there is no branch {branch}", options=names)
        return self.propose(frame, *writes_of("switch", frame.slots))

    def _unstage(self, frame: Frame) -> Write:
        _, staged, _ = self._status()
        file = self.need(frame, "file")
        if file not in staged:
            self.gone(frame, "file", f"{file} is not staged, so there is no such file", options=staged)
        if len(staged) > 1:
            self.refuse(frame, f"{' and '.join(f for f in staged if f != file)} would be unstaged too")
        return self.propose(frame, *writes_of("unstage", frame.slots))

    def _delete(self, frame: Frame) -> Say:
        self.refuse(frame, "branches are never deleted")
        return Say("I cannot do that, there is no tool for it.")

    def _status(self) -> tuple[str, list[str], list[str]]:
        """The branch that is checked out, the staged files, and those with other changes."""
        text = self.look("status").text
        branch = re.search(r"On branch (\S+)", text)
        staged_part, _, rest = text.partition("Changes not staged for commit:")
        if "Changes to be committed:" not in staged_part:
            staged_part = ""
        return branch[1] if branch else "", _CHANGE.findall(staged_part), _CHANGE.findall(rest)

    def _branches(self) -> tuple[str, list[str]]:
        """The branch that is checked out, and all of them."""
        lines = self.look("list_branches").text.splitlines()
        current = next((line[2:] for line in lines if line.startswith("* ")), "")
        return current, [line[2:].strip() for line in lines if line.strip()]

    def slipped(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """A branch's name with its last letter missing."""
        return {"revision": arguments["revision"][:-1]} if name == "show" else None
