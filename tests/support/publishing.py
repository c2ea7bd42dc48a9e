"""A small wheel, and an environment of a person's own with files beside it, for tests of ``muarl env export``."""

from __future__ import annotations

import zipfile
from pathlib import Path

from muarl.basics.version import __version__

SHOP = '''
"""A desk that opens and closes one account."""

import json
from pathlib import Path

from muarl import Action, Domain, Environment, Task, tool
from muarl.users.scripted import ScriptedUser
from people import FIRST

NAMES = json.loads((Path(__file__).parent / "names.json").read_text())


class Desk(Domain):
    """Accounts."""

    name = "desk"
    policy = Path("policy.md")
    database = {"accounts": {name: {"name": name, "open": True} for name in (FIRST, *NAMES)}}

    @tool(writes=True)
    def close_account(self, name: str) -> dict:
        """Close a person's account."""
        self.db.accounts[name]["open"] = False
        return self.db.accounts[name]


def task(split: str, index: int, seed: int = 0) -> Task:
    """A person who wants the account closed."""
    name = (FIRST, *NAMES)[index % 3]
    return Task(
        id=f"desk-{split}-{seed}-{index}",
        domain="desk",
        scenario=f"You are {name}, and want your account closed.",
        actions=(Action("close_account", {"name": name}),),
        agenda={"lines": (f"I am {name}. Please close my account.", "Thank you.")},
    )


def customer(task: Task, *, seed: int, persona: str | None = None) -> ScriptedUser:
    """Says two lines."""
    return ScriptedUser(task.agenda["lines"])


DESK = Environment(name="own-desk", about="A desk.", domain=Desk, tasks=task, rule_based_user=customer)
'''


def small_wheel(folder: Path, name: str = "muarl", version: str = __version__) -> Path:
    """A wheel without code, as far as its reader looks."""
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel, "w") as archive:
        info = f"{name}-{version}.dist-info"
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{info}/licenses/LICENSE", "the licence")
        archive.writestr(f"{info}/licenses/NOTICE", "the notices")
    return wheel


def own_desk(folder: Path, code: str = SHOP) -> str:
    """Write the environment and what lies beside it; its reference."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "desk.py").write_text(code)
    (folder / "people.py").write_text('FIRST = "Ann"\n')
    (folder / "names.json").write_text('["Bob", "Cem"]')
    (folder / "policy.md").write_text("You keep accounts. Close an account when its owner asks for it.")
    (folder / "notes.txt").write_text("not for others")
    (folder / ".env").write_text("KEY=secret")
    return f"{folder}/desk.py:DESK"
