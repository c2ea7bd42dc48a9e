"""The banking domain: TAU2's tools over one database that both sides share, and documents to search."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from muarl.basics.errors import ConfigError, DataError
from muarl.domains.base import Domain, Semantics, World
from muarl.domains.database import Database
from muarl.domains.tasks import Task
from muarl.retrieval.documents import Document, Knowledge
from muarl.retrieval.embeddings import Embedder, EmbeddingCache
from muarl.retrieval.reranking import Reranker
from muarl.retrieval.variants import DEFAULT, LEAST_RATING, variant
from muarl.types.episode import Usage
from muarl_worlds.tau.banking.agent_tools import KnowledgeTools, recorded_reads
from muarl_worlds.tau.banking.customer import KnowledgeUserTools
from muarl_worlds.tau.banking.records import BankView, banking_database, laid_over
from muarl_worlds.tau.banking.retrieval import policy
from muarl_worlds.tau.banking.search_tools import (
    NAMES,
    BankSearch,
    GrepMixin,
    KBSearchBm25AllToolsMixin,
    KBSearchDenseAllToolsMixin,
    KBSearchMixin,
    ShellMixin,
)

FOLDER = "domains/banking_knowledge"


class BankingCustomer(KnowledgeUserTools):
    """The user's toolkit; its database is the agent's."""

    name = "banking_knowledge_user"


class Banking(
    KnowledgeTools, KBSearchMixin, GrepMixin, KBSearchBm25AllToolsMixin, KBSearchDenseAllToolsMixin, ShellMixin
):
    """TAU2's bank.

    ``database``: a Database from ``banking_database``, or tables in TAU2's schema; ``documents``: the knowledge base.
    Without them, and without a ``policy``, those of the installed benchmark are used (DataError says how to install
    it). The other options are those of ``Domain``.

    ``retrieval``: one of TAU2's variants (``retrieval.VARIANTS``), which decides upon the search tools and the policy.
    ``top_k`` and ``grep_top_k``: how many documents a search gives; ``case_sensitive``: whether case counts for grep.
    ``embedder``, ``reranker``: models in place of those that TAU2 asks for the variant; ``reranker_min_score``: the
    lowest score of a document that is shown (None: any); ``embedding_cache``: where embeddings are kept.
    ``required_documents``: ids or titles, for golden_retrieval, whose policy is one task's (``policy_for`` takes them
    from the task). ConfigError if one of them is not possible.
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
        embedder: Embedder | None = None,
        reranker: Reranker | None = None,
        reranker_min_score: float | None = LEAST_RATING,
        embedding_cache: EmbeddingCache | None = None,
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
        self.top_k, self.grep_top_k = top_k, grep_top_k
        self._required = tuple(required_documents or ())
        if documents is None:
            library = cache(official_knowledge)  # found once for all worlds, and not before it is needed
        else:
            known = documents if isinstance(documents, Knowledge) else Knowledge(documents)
            library = cache(lambda: known)
        self.finding = BankSearch(
            self._variant,
            library,
            embedder=embedder,
            reranker=reranker,
            least=reranker_min_score,
            cache=embedding_cache,
            case_sensitive=case_sensitive,
        )
        offered = [n for n in self._variant.tools if n in self._tools]
        searches = {n: replace(self._tools[n], waits=self.finding.waits(n)) for n in offered}
        rest = {n: t for n, t in self._tools.items() if n not in NAMES}
        self._tools = {**searches, **rest}
        self.waits = any(t.waits for t in searches.values())
        self._user = BankingCustomer(database=Database({}), semantics=semantics)
        self._options = {
            **options, "documents": documents, "semantics": semantics, "required_documents": required_documents,
        }  # fmt: skip

    @property
    def knowledge(self) -> Knowledge:
        """The documents given, else the installed benchmark's. DataError if they are not installed."""
        return self.finding.knowledge

    def with_retrieval(self, retrieval: str | None = None, **options: Any) -> Banking:
        """The same bank with another retrieval variant and its options (those of the class). ConfigError if one is not
        possible."""
        chosen = DEFAULT if retrieval is None else retrieval
        given = {**self._options, **options}
        if variant(chosen).inlined == "required" and given["required_documents"] is None:
            given["required_documents"] = ()
        made = type(self)(retrieval=chosen, **given)
        made._base, made._given_database = self._base, self._given_database
        return made

    @property
    def retrieval_text(self) -> str:
        """The variant, and which models stand in for those that TAU2 asks."""
        return "; ".join([self.retrieval, *self.finding.stand_ins])

    @property
    def policy_by_task(self) -> bool:
        """Whether each task has a policy of its own (golden_retrieval)."""
        return self._variant.inlined == "required" and not self._required

    def policy_for(self, task: Task) -> str:
        """The policy; under golden_retrieval with the documents that the task needs. DataError names one that there is
        not."""
        if not self.policy_by_task:
            return self.policy_text
        return policy(self._variant, _prompt, lambda: self.knowledge, task.tags.get("required_documents") or ())

    @property
    def searching_usage(self) -> Usage:
        """What models that searches asked have used."""
        return self.finding.usage

    async def aclose(self) -> None:
        """Close the connections of models that searches have asked."""
        await self.finding.aclose()

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
                from muarl_worlds.data import read_json

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
        if "shell" in self._tools:
            desk.files = self.finding.files()
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
    from muarl_worlds.data import read_text

    return read_text("tau2", f"{FOLDER}/prompts/{file}")


def official_knowledge() -> Knowledge:
    """The installed benchmark's documents. DataError if they are not installed."""
    from muarl_worlds import data

    folder = data.path("tau2") / FOLDER / "documents"
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder. Run `muarl data fetch tau2` to install all of tau2")
    return _read(folder)


@cache
def _read(folder: Path) -> Knowledge:
    return Knowledge.read(folder)
