"""The banking domain: TAU2's tools over one database that both sides share, and documents to search."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from muarl.domains.banking.agent_tools import KnowledgeTools, recorded_reads
from muarl.domains.banking.customer import KnowledgeUserTools
from muarl.domains.banking.records import BankView, banking_database, laid_over
from muarl.domains.banking.retrieval import DEFAULT, GrepMixin, KBSearchMixin, policy, variant
from muarl.domains.base import Domain, Semantics, World
from muarl.domains.database import Database
from muarl.errors import ConfigError, DataError
from muarl.retrieval import Document, Knowledge

FOLDER = "domains/banking_knowledge"


class BankingCustomer(KnowledgeUserTools):
    """The user's toolkit; its database is the agent's."""

    name = "banking_knowledge_user"


class Banking(KnowledgeTools, KBSearchMixin, GrepMixin):
    """TAU2's bank.

    ``database``: a Database from ``banking_database``, or tables in TAU2's schema; ``documents``: the knowledge base.
    Without them, and without a ``policy``, those of the installed benchmark are used (DataError says how to install
    it). The other options are those of ``Domain``.

    ``retrieval``: one of TAU2's variants that need no network (``retrieval.VARIANTS``), which decides upon the search
    tools and the policy. ``top_k`` and ``grep_top_k``: how many documents a search gives; ``case_sensitive``: whether
    case counts for grep. ``required_documents``: ids or titles, for golden_retrieval, whose policy is one task's.
    ConfigError if one of them is not possible.
    """

    name = "banking_knowledge"
    user_toolkit = BankingCustomer

    def __init__(
        self,
        *,
        documents: Iterable[Document] | Knowledge | None = None,
        retrieval: str = DEFAULT,
        top_k: int = 10,
        grep_top_k: int = 10,
        case_sensitive: bool = False,
        required_documents: Sequence[str] | None = None,
        semantics: Semantics = "fixed",
        **options: Any,
    ) -> None:
        super().__init__(semantics=semantics, **options)
        self.retrieval, self._variant = retrieval, variant(retrieval)
        for option, value in (("top_k", top_k), ("grep_top_k", grep_top_k)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigError(f"{option}: must be a whole number above 0, not {value!r}")
        if self._variant.inlined == "required" and required_documents is None:
            raise ConfigError(f"retrieval {retrieval!r} needs required_documents, the documents of one task")
        self.top_k, self.grep_top_k, self.case_sensitive = top_k, grep_top_k, case_sensitive
        self._required = tuple(required_documents or ())
        if documents is None:
            self._library = cache(official_knowledge)  # found once for all worlds, and not before it is needed
        else:
            known = documents if isinstance(documents, Knowledge) else Knowledge(documents)
            self._library = cache(lambda: known)
        searches = {n: self._tools[n] for n in self._variant.tools if n in self._tools}
        rest = {n: t for n, t in self._tools.items() if n not in ("KB_search", "grep")}
        self._tools = {**searches, **rest}
        self._user = BankingCustomer(database=Database({}), semantics=semantics)

    @property
    def knowledge(self) -> Knowledge:
        """The documents given, else the installed benchmark's. DataError if they are not installed."""
        return self._library()

    @property
    def policy_text(self) -> str:
        """The policy given, else that of the retrieval variant. DataError if the benchmark is not installed."""
        if not self._policy_text:
            self._policy_text = policy(self._variant, _prompt, lambda: self.knowledge, self._required)
        return self._policy_text

    @property
    def base(self) -> Database:
        """The database given, else the installed benchmark's. DataError if that is not installed."""
        if self._base is None:
            given = self._given_database
            if given is None:
                from muarl.data import read_json

                given = read_json("tau2", f"{FOLDER}/db.json")
            self._base = given if isinstance(given, Database) else banking_database(given)
        return self._base

    def prepare(self, world: World) -> None:
        """Give both sides one database, with the task's own data over it, and run the task's initial actions.

        DataError names what is wrong with them.
        """
        desk, customer, task = world.toolkit("assistant"), world.toolkit("user"), world.task
        base = desk.db.base
        for partial in ((task.initial_data if task is not None else None) or {}).values():
            if partial is not None:
                base = _laid(base, partial, f"banking_knowledge task {task.id!r}: " if task is not None else "")
        desk.db = customer.db = BankView(base)
        desk._unlocked = set()
        desk._recorded_reads = recorded_reads(task.actions if task is not None else None)
        for action in task.initial_actions if task is not None else ():
            name = action["func_name"]
            function = None if name.startswith("_") else getattr(world.toolkit(action["env_type"]), name, None)
            if function is None or hasattr(Domain, name):
                raise DataError(f"banking_knowledge: initial action {name!r} is no function here")
            function(**action["arguments"])


def _laid(base: Database, partial: Mapping[str, Any], where: str) -> Database:
    try:
        return laid_over(base, partial)
    except DataError as problem:
        raise DataError(f"{where}{problem}") from None


def _prompt(file: str) -> str:
    from muarl.data import read_text

    return read_text("tau2", f"{FOLDER}/prompts/{file}")


def official_knowledge() -> Knowledge:
    """The installed benchmark's documents. DataError if they are not installed."""
    from muarl import data

    folder = data.path("tau2") / FOLDER / "documents"
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder. Run `muarl data fetch tau2` to install all of tau2")
    return _read(folder)


@cache
def _read(folder: Path) -> Knowledge:
    return Knowledge.read(folder)
