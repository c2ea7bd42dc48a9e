"""The repository: its tools, how an episode's is made, and what of it counts in the end."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any, ClassVar

from muarl.basics.errors import InfrastructureError
from muarl.domains.database import Database
from muarl.domains.mcp.folders import folder_state
from muarl.domains.mcp.scenario import ScenarioDomain
from muarl.domains.mcp.tools import OfferedTool

STARTED = 1_767_258_000
"""When the first commit was made: seconds since 1970, UTC. Each further one follows a day later."""
DAY = 86_400
CONFIG = """[core]
\trepositoryformatversion = 0
\tfilemode = false
\tbare = false
[user]
\tname = Desk Assistant
\temail = desk@example.com
[gc]
\tauto = 0
"""
REPOSITORY = {"repo_path": "{folder}"}
_ENVIRONMENT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "LANG": "C.UTF-8", "HOME": "/nonexistent"}


class GitDomain(ScenarioDomain):
    """A team's repository. A task's database has the tables "commits" (number to {"parent", "author", "message",
    "files"}), "branches" (name to {"commit"}), "head" ({"HEAD": {"branch"}}), "work" (path to {"text", "staged"})."""

    name = "mcp-git"
    folder = Path(__file__).parent
    public = "git"
    arguments = ("--repository", "{folder}")
    # Fixed dates (2026-03-16 09:00 UTC) make commits the same on every run; nobody's own git settings are read.
    env: ClassVar = {
        "GIT_AUTHOR_DATE": "1773651600 +0000",
        "GIT_COMMITTER_DATE": "1773651600 +0000",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    offers = (
        OfferedTool("git_status", "status", "read", REPOSITORY),
        OfferedTool("git_log", "log", "read", REPOSITORY, ("start_timestamp", "end_timestamp")),
        OfferedTool("git_show", "show", "read", REPOSITORY),
        OfferedTool(
            "git_branch", "list_branches", "read", {**REPOSITORY, "branch_type": "local"}, ("contains", "not_contains")
        ),
        OfferedTool("git_diff_unstaged", "diff_unstaged", "read", REPOSITORY, ("context_lines",)),
        OfferedTool("git_diff_staged", "diff_staged", "read", REPOSITORY, ("context_lines",)),
        OfferedTool("git_diff", "diff", "read", REPOSITORY, ("context_lines",)),
        OfferedTool("git_add", "add", "write", REPOSITORY),
        OfferedTool("git_commit", "commit", "write", REPOSITORY),
        OfferedTool("git_create_branch", "create_branch", "write", REPOSITORY),
        OfferedTool("git_checkout", "switch_branch", "write", REPOSITORY),
        OfferedTool("git_reset", "unstage_all", "write", REPOSITORY),
    )
    tiny_tools: ClassVar[tuple[str, ...]] = (
        "status", "show", "list_branches", "add", "commit", "create_branch", "switch_branch", "unstage_all",
    )  # fmt: skip

    def lay_out(self, database: Database, folder: Path) -> None:
        """Make the repository with its history, then what has been changed and staged since."""
        tables = database.tables
        hidden = folder / ".git"
        for part in ("objects/info", "objects/pack", "refs/heads", "refs/tags"):
            (hidden / part).mkdir(parents=True)
        (hidden / "config").write_text(CONFIG, encoding="utf-8")
        head = tables.get("head", {}).get("HEAD", {}).get("branch", "main")
        (hidden / "HEAD").write_text(f"ref: refs/heads/{head}\n", encoding="utf-8")
        if not tables.get("commits"):
            return
        _git(folder, "fast-import", "--quiet", given=history(tables))
        _git(folder, "reset", "--quiet", "--hard")
        staged = []
        for path, record in tables.get("work", {}).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(record["text"], encoding="utf-8")
            staged += [path] if record["staged"] else []
        if staged:
            _git(folder, "add", "--", *staged)

    def read_state(self, folder: Path) -> Any:
        """Branches with their commits, which one is checked out, what is staged, and the files."""
        heads = folder / ".git" / "refs" / "heads"
        branches = {p.relative_to(heads).as_posix(): p.read_text().strip() for p in heads.rglob("*") if p.is_file()}
        files = {k: v for k, v in folder_state(folder).items() if not k.startswith(".git/")}
        return {
            "branches": branches,
            "head": (folder / ".git" / "HEAD").read_text(encoding="utf-8").strip(),
            "staged": _git(folder, "ls-files", "--stage").splitlines(),
            "files": files,
        }


def history(tables: Any) -> str:
    """A stream for git fast-import: all commits, then the branches."""
    parts = []
    for n, (number, commit) in enumerate(tables["commits"].items()):
        author = commit["author"]
        mail = f"{author.lower().replace(' ', '.')}@example.com"
        when = f"{author} <{mail}> {STARTED + n * DAY} +0000"
        parts.append(f"commit refs/import/{number}\nmark :{int(number)}\nauthor {when}\ncommitter {when}\n")
        parts.append(_data(f"{commit['message']}\n"))
        if commit["parent"]:
            parts.append(f"from :{int(commit['parent'])}\n")
        for path, text in commit["files"].items():
            parts.append(f"M 100644 inline {path}\n{_data(text)}")
        parts.append("\n")
    for name, branch in tables["branches"].items():
        parts.append(f"reset refs/heads/{name}\nfrom :{int(branch['commit'])}\n\n")
    return "".join(parts)


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}\n"


def _git(folder: Path, *arguments: str, given: str = "") -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, input=given, text=True, capture_output=True, timeout=60, check=False,
        env={**_ENVIRONMENT, "PATH": os.environ.get("PATH", os.defpath)},
    )  # fmt: skip
    if done.returncode:
        raise InfrastructureError(f"git {arguments[0]} failed: {done.stderr.strip()[:300]}", boundary="world")
    return done.stdout
