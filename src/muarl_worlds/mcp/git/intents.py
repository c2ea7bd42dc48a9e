"""What the members of a team want of their repository, how they say it, and how each request is served."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from muarl.domains.kit.declaration import DrawContext, RecordDescription, Slot, intent, names, of, pattern, rows
from muarl.domains.kit.plan import Plan
from muarl.domains.kit.records import Record
from muarl.domains.kit.service import Service
from muarl.domains.mcp.scenario import SIZES
from muarl_worlds.mcp.git.domain import GitDomain
from muarl_worlds.mcp.git.rehearsal import GitRehearsal
from muarl_worlds.mcp.git.world import KINDS, PROTECTED, make_tables

_CHANGE = re.compile(r"^\t(?:(?:modified|new file|deleted|renamed): +)?(\S+)$", re.MULTILINE)
BRANCH_KIND = pattern(r"(?:feature|fix|docs|my|tmp)/[a-z]+-[a-z]+|main|release")
PATH_KIND = pattern(r"(?:src|docs|tests|tools)/[a-z]+\.(?:py|md)")


# what the tools show


def shown(it: Plan, tool: str, **arguments: str) -> str:
    """The text that a tool answers."""
    answer = it.look(tool, **arguments)
    return answer if isinstance(answer, str) else ""


def status_of(it: Plan) -> Record:
    """The branch that is checked out, the staged files, and those with other changes."""
    text = shown(it, "status")
    branch = re.search(r"On branch (\S+)", text)
    staged, _, rest = text.partition("Changes not staged for commit:")
    listed = _CHANGE.findall(staged) if "Changes to be committed:" in staged else []
    return Record({"branch": branch[1] if branch else "", "staged": listed, "changed": _CHANGE.findall(rest)})


def branches_of(it: Plan) -> list[str]:
    """All branches."""
    return [line[2:].strip() for line in shown(it, "list_branches").splitlines() if line.strip()]


def by_name(it: Plan, name: str) -> list[str]:
    """The changed files that are called so."""
    status = status_of(it)
    return [path for path in (*status.staged, *status.changed) if path.endswith(f"/{name}")]


# where values come from


def rows_of(drawn: DrawContext, *tables: str) -> list[Any]:
    """The records of tables."""
    return [drawn.tables[table][name] for table in tables for name in drawn.tables[table]]


def other_branches(drawn: DrawContext) -> Iterable[Any]:
    """The branches that are not checked out, and some that there are not."""
    head = drawn.tables.head.HEAD.branch
    return [one for one in rows_of(drawn, "branches", "fresh_branches") if one.name != head]


def settled(drawn: DrawContext) -> list[Any]:
    """The branches that no further request can commit to."""
    head = drawn.tables.head.HEAD.branch
    return [one for one in rows_of(drawn, "branches") if one.name != head or head in PROTECTED]


def bases(drawn: DrawContext) -> Iterable[Any]:
    """The branches that a new one may start from, and one that there is not."""
    free = [one for one in rows_of(drawn, "fresh_branches") if one.name != drawn.new_branch.name]
    return [*settled(drawn), *free[:1]]


def asked_about(drawn: DrawContext) -> Iterable[Any]:
    """The branches that questions are about."""
    return [one for one in settled(drawn) if one.name not in PROTECTED]


def to_unstage(drawn: DrawContext) -> Iterable[Any]:
    """The files of the repository, the staged ones above all."""
    paths, work = rows_of(drawn, "paths"), drawn.tables.work
    return paths + 6 * [one for one in paths if one.path in work and work[one.path].staged]


def to_commit(drawn: DrawContext) -> Iterable[Any]:
    """The files of the repository, but for the staged ones."""
    work = drawn.tables.work
    return [one for one in rows_of(drawn, "paths") if one.path not in work or not work[one.path].staged]


FILE = Slot(
    "file",
    PATH_KIND,
    ask="Which file is it?",
    say=["It is {}.", "I mean {}."],
    change=["Actually, I mean {}.", "Sorry, no. It is {}."],
    draw=of(to_commit, "path"),
    described=RecordDescription(
        kind=pattern(r"(?<!/)[a-z]+\.(?:py|md)"),
        match="name",
        find=by_name,
        phrase="my change to {}",
        say="I do not know the path. The file is called {}.",
    ),
    asked="(which|what).{0,12} file",
)
STAGED_FILE = Slot(
    "staged_file",
    PATH_KIND,
    ask="Which file is it?",
    say=["It is {}.", "I mean {}."],
    draw=of(to_unstage, "path"),
    asked="(which|what).{0,12} file",
)
MESSAGE = Slot(
    "message",
    "quoted",
    ask="What should the commit message be?",
    say=["The message is {}.", "Write {}."],
    change=["Actually, the message is {}.", "Wait, write {}."],
    draw=rows("messages", "text"),
    asked="(which|what).{0,30} message",
    guess=("Update the files",),
)
NEW_BRANCH = Slot(
    "new_branch",
    BRANCH_KIND,
    ask="Which name should the branch have?",
    say=["Call it {}.", "It should be called {}."],
    change=["Actually, call it {}.", "Wait, I would rather call it {}."],
    draw=of(lambda drawn: rows_of(drawn, "branches", "fresh_branches", "fresh_branches", "wrong_branches"), "name"),
    asked="(which|what).{0,16} (branch|name)|another name|branch be called",
)
BASE = Slot(
    "base",
    BRANCH_KIND,
    ask="From where should it start?",
    say=["It should start from {}.", "Start from {}."],
    change=["Actually, start from {}.", "Sorry, it should start from {}."],
    draw=of(bases, "name"),
    cue="from(?: the branch)?",
    strict=True,
    asked="from (which branch|where)|which branch should it (start|come)|(which|what).{0,12} base",
    guess=("main",),
)
BRANCH = Slot(
    "branch",
    BRANCH_KIND,
    ask="Which branch do you mean?",
    say=["I mean {}.", "The branch {}, please."],
    change=["Actually, I mean {}.", "Wait, take the branch {}."],
    draw=of(other_branches, "name"),
    asked="(which|what).{0,16} branch|(which|what).{0,12} name",
)
WHERE = Slot(
    "where",
    BRANCH_KIND,
    ask="On which branch?",
    say=["I mean on {}.", "Look on {}."],
    draw=of(asked_about, "name"),
    asked="(which|what) branch",
)
FIELD = Slot(
    "field",
    names(["author", "message"]),
    ask="What would you like to know?",
    say=["I want to know the {}.", "The {}, please."],
    asked="what would you like to know|(which|what) detail",
)


@intent(
    says=["delete the branch {branch}", "have the branch {branch} deleted", "delete a branch of mine"],
    slots=[BRANCH],
    forbidden=True,
    heard=r"\bdelet|\bremove\b|\bget rid of\b",
)
def delete(it: Plan) -> None:
    it.refuse("branches are never deleted")


@intent(
    says=[
        "find out the {field} of the last commit on {where}",
        "look up the {field} of the newest commit on {where}",
        "find out the {field} of the last commit",
        "find out something about the last commit",
    ],
    slots=[FIELD, WHERE],
    heard=r"\b(know (?:the|who|which|when|what (?!to))|tell me|find out|look up|who made|who wrote)\b",
)
def question(it: Plan) -> None:
    commit = shown(it, "show", revision=it.where)
    author = re.search(r"^Author: (.+?) <", commit, re.MULTILINE)
    message = re.search(r"^ {4}(.+)$", commit, re.MULTILINE)
    found = author if it.field == "author" else message
    it.found = found[1] if found else "not known"
    it.answer(
        ["The {field} of the last commit on {where} is {found}.", "On {where}, the {field} is {found}."], tell="{found}"
    )


@intent(
    says=["unstage {staged_file}", "take {staged_file} out of the staging area", "unstage a file"],
    slots=[STAGED_FILE],
    share=2,
    heard=r"\bunstag|\bstag(ing|ed)\b",
)
def unstage(it: Plan) -> None:
    it.status = status_of(it)
    it.unavailable_if(
        it.staged_file not in it.status.staged, STAGED_FILE, it.status.staged, why="{staged_file} is not staged"
    )
    it.others = [path for path in it.status.staged if path != it.staged_file]
    it.refuse_if(it.others, "{others|list} would be unstaged too")
    it.write(
        "unstage_all",
        propose=["unstage {staged_file}, and keep its changes", "unstage {staged_file}; its changes stay"],
        done=["{staged_file} is no longer staged.", "Done, {staged_file} is unstaged."],
    )


@intent(
    says=[
        "commit {file} with the message {message}",
        "have {file} committed with the message {message}",
        "commit {file}",
        "commit a change",
    ],
    slots=[FILE, MESSAGE],
    share=3,
    heard=r"\bcommit",
)
def commit(it: Plan) -> None:
    it.status = status_of(it)
    it.refuse_if(
        it.status.branch in PROTECTED, "nothing is committed to {status.branch}, which is checked out and is protected"
    )
    it.unavailable_if(
        it.file not in (*it.status.staged, *it.status.changed), FILE, it.status.changed, why="{file} has no changes"
    )
    it.write(
        "add",
        files=[it.file],
        propose=[
            "add {file} and commit it to {status.branch} with the message {message}",
            "commit {file} to {status.branch}; the message will be {message}",
        ],
        done=["{file} is committed.", "Done, {file} is committed to {status.branch}."],
    )
    it.then("commit", message=it.message)


@intent(
    says=[
        "create the branch {new_branch} from {base}",
        "start a new branch {new_branch} from {base}",
        "create the branch {new_branch}",
        "start a new branch for my work",
    ],
    slots=[NEW_BRANCH, BASE],
    share=1.3,
    heard=r"\b(create|make|start|open|new)\b.*\bbranch\b",
)
def branch(it: Plan) -> None:
    it.refuse_if(
        it.new_branch.split("/")[0] not in (*KINDS, *PROTECTED),
        "a branch must be called feature/..., fix/... or docs/...",
    )
    it.names = branches_of(it)
    it.unavailable_if(it.new_branch in it.names, NEW_BRANCH, why="the branch {new_branch} already exists")
    it.unavailable_if(it.base not in it.names, BASE, it.names, why="there is no branch {base}")
    it.write(
        "create_branch",
        branch_name=it.new_branch,
        base_branch=it.base,
        propose=["create the branch {new_branch} from {base}", "start the new branch {new_branch} from {base}"],
        done=["The branch {new_branch} is there.", "Done, {new_branch} starts from {base}."],
    )


@intent(
    says=["switch to the branch {branch}", "check out the branch {branch}", "switch to another branch"],
    slots=[BRANCH],
    share=1.6,
    heard=r"\bswitch|\bcheck ?out\b|\bgo to\b|\bchange to\b",
)
def switch(it: Plan) -> None:
    it.status = status_of(it)
    it.open = [*it.status.staged, *it.status.changed]
    it.refuse_if(it.open, "there are changes in {open|list}")
    names = branches_of(it)
    others = [name for name in names if name != it.status.branch]
    it.unavailable_if(it.branch not in names, BRANCH, others, why="there is no branch {branch}")
    it.write(
        "switch_branch",
        branch_name=it.branch,
        propose=["switch to the branch {branch}", "check out the branch {branch}"],
        done=["You are on {branch} now.", "Done, {branch} is checked out."],
    )


SERVICE = Service(
    domain=GitDomain,
    rehearsal=GitRehearsal,
    about="a team's git repository, which an assistant looks after",
    today="2026-03-16",
    intents=(delete, question, unstage, commit, branch, switch),
    tables=make_tables,
    sizes=SIZES,
    free_texts={"commits": "message"},
    tiny_tools=GitDomain.tiny_tools,
    vocabulary=(
        "Repository status:\nOn branch ", "\nnothing to commit, working tree clean", "\n\tmodified:   ",
        "Changes not staged for commit:", "Changes to be committed:", "no changes added to commit", "\nAuthor: ",
        '  (use "git add <file>..." to update what will be committed)',
        '  (use "git restore --staged <file>..." to unstage)',
        '  (use "git restore <file>..." to discard changes in working directory)',
    ),
)  # fmt: skip
