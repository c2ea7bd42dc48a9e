"""The repository's tools without their server, as far as plans and right answers need them."""

from __future__ import annotations

from muarl.domains.base import Domain
from muarl.domains.tooling import tool

ME = "Desk Assistant"


class GitRehearsal(Domain):
    """Answers as the server does, but for hashes and dates."""

    name = "mcp-git"

    @tool
    def status(self) -> str:
        """The branch, and what has changed."""
        staged, changed = self._work(staged=True), self._work(staged=False)
        lines = ["Repository status:", f"On branch {self._head()}"]
        if staged:
            lines += ["Changes to be committed:", *(f"\tmodified:   {path}" for path in staged), ""]
        if changed:
            lines += ["Changes not staged for commit:", *(f"\tmodified:   {path}" for path in changed), ""]
        return "\n".join([*lines, *([] if staged or changed else ["nothing to commit, working tree clean"])])

    @tool
    def show(self, revision: str) -> str:
        """The last commit of a branch."""
        commit = self.db["commits"][self._commit(revision)]
        mail = commit["author"].lower().replace(" ", ".")
        message = "".join(f"    {line}\n" for line in commit["message"].splitlines())
        return f"commit\nAuthor: {commit['author']} <{mail}@example.com>\n\n{message}"

    @tool
    def list_branches(self) -> str:
        """All branches."""
        head = self._head()
        return "\n".join(f"{'*' if name == head else ' '} {name}" for name in sorted(self.db["branches"]))

    @tool(writes=True)
    def add(self, files: list[str]) -> str:
        """Stage files."""
        for path in files:
            if path not in self.db["paths"]:
                raise ValueError(f"pathspec '{path}' did not match any files")
            if path in self.db["work"]:
                self.db["work"][path]["staged"] = True
        return "Files staged successfully"

    @tool(writes=True)
    def commit(self, message: str) -> str:
        """Commit what is staged."""
        number = f"{len(self.db['commits']) + 1:02d}"
        files = {path: self.db["work"][path]["text"] for path in self._work(staged=True)}
        for path in files:
            del self.db["work"][path]
        branch = self.db["branches"][self._head()]
        self.db["commits"][number] = {"parent": branch["commit"], "author": ME, "message": message, "files": files}
        branch["commit"] = number
        return f"Changes committed successfully with hash {number}"

    @tool(writes=True)
    def create_branch(self, branch_name: str, base_branch: str) -> str:
        """Create a branch."""
        if branch_name in self.db["branches"]:
            raise ValueError(f"a branch named '{branch_name}' already exists")
        self.db["branches"][branch_name] = {"name": branch_name, "commit": self._commit(base_branch)}
        return f"Created branch '{branch_name}' from '{base_branch}'"

    @tool(writes=True)
    def switch_branch(self, branch_name: str) -> str:
        """Check out a branch."""
        self._commit(branch_name)
        self.db["head"]["HEAD"] = {"branch": branch_name}
        return f"Switched to branch '{branch_name}'"

    @tool(writes=True)
    def unstage_all(self) -> str:
        """Take everything out of the staging area."""
        for path in self._work(staged=True):
            self.db["work"][path]["staged"] = False
        return "All staged changes reset"

    def _head(self) -> str:
        return str(self.db["head"]["HEAD"]["branch"])

    def _work(self, *, staged: bool) -> list[str]:
        """The changed files that are staged, or those that are not."""
        return sorted(path for path, record in self.db["work"].items() if record["staged"] == staged)

    def _commit(self, branch: str) -> str:
        """The number of a branch's last commit."""
        if branch not in self.db["branches"]:
            raise ValueError(f"Ref '{branch}' did not resolve to an object")
        return str(self.db["branches"][branch]["commit"])
