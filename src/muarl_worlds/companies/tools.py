"""The tools of a company's service desk, on its documents and a small database of customers and contracts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from muarl.basics.untrusted import parse_json
from muarl.domains.knowledge.discovery import CALL, UNLOCK, shown
from muarl.domains.knowledge.domain import KnowledgeDomain
from muarl.domains.tooling import tool, tools_of
from muarl.retrieval.documents import Knowledge
from muarl.retrieval.search import Hit, Search
from muarl.types.chat import ToolSpec
from muarl_worlds.companies.company import Company
from muarl_worlds.companies.making import company
from muarl_worlds.companies.rules import Procedure, Role
from muarl_worlds.companies.trades import Operation, Trade

GIVE = "give_discoverable_user_tool"
_TYPES: Mapping[Role, str] = {
    "contract": "string", "fee": "number", "amount": "number", "target": "string", "code": "string",
}  # fmt: skip
_FOLDER = Path(__file__).parent


def policy_of(trade: Trade, file: str) -> str:
    """One of the two policies in a trade's words."""
    text = (_FOLDER / file).read_text(encoding="utf-8")
    return text.format(company=trade.company, contract=trade.contract, contracts=trade.contracts).strip()


class CompanyDomain(KnowledgeDomain):
    """The service desk of a company of a ``trade``.

    Which company it is says the task's database, in its table ``company``; where there is none it is the one of the
    option ``company`` (its key, such as "small-known-0").
    """

    trade: ClassVar[Trade]

    def __init__(self, *, company: str = "small-known-0", tools: Sequence[str] | None = None, **options: Any) -> None:
        super().__init__(documents=(), tools=tools, **options)
        self._tools = {n: t for n, t in tools_of(type(self)).items() if tools is None or n in tools}
        self._company = company

    @property
    def company(self) -> Company:
        """The company whose desk it is."""
        key = self._company
        if "db" in self.__dict__ and "company" in self.db:
            key = next(iter(self.db.company))
        return company(self.trade, key)

    @property
    def shared_knowledge(self) -> Knowledge:
        """The company's documents."""
        return self.company.knowledge

    def discoverable_names(self) -> tuple[str, ...]:
        """The tools that the company's documents name."""
        return tuple(self.company.tools)

    # people and what they have

    @tool
    def identify_customer(self, customer_id: str, postcode: str) -> dict[str, Any]:
        """Find the customer by customer number and postcode; both must be right.

        customer_id: the customer number, such as 'C-123456'
        postcode: five digits
        """
        known = self.db.customers
        if customer_id in known and known.peek(customer_id)["postcode"] == postcode.strip():
            return dict(known.peek(customer_id))
        raise ValueError("no customer with this number and postcode")

    def _held(self, customer_id: str) -> dict[str, Any]:
        """What a customer has."""
        if customer_id not in self.db.customers:
            raise ValueError(f"customer {customer_id} not found")
        key = self.trade.key
        own = [r for _, r in self.db.contracts.scan() if r["customer_id"] == customer_id]
        return {self.trade.contracts: [{"product": r["product"], key: r[key]} for r in own]}

    def _contract(self, contract_id: str) -> Any:
        if contract_id not in self.db.contracts:
            raise ValueError(f"{self.trade.contract} {contract_id} not found")
        return self.db.contracts[contract_id]

    # documents

    @tool
    def KB_search(self, query: str) -> str:
        """Search the documents by words. Shows the documents that fit best, whole.

        query: what to look for, in a few words
        """
        return self._searched(query)

    @tool
    def grep(self, pattern: str) -> str:
        """Search the documents by a regular expression. Shows those with most matches, whole.

        pattern: such as 'cancel|refund'; upper and lower case are the same
        """
        return self._matched(pattern)

    def _own_most(self) -> int:
        return self.company.size.top_k

    def _found(self, search: Search, query: str) -> list[Hit]:
        return [hit for hit in search.search(query, self._most()) if hit.score > 0]

    def _laid_out(self, hits: Sequence[Hit]) -> str:
        if self.company.size.brief:
            return "\n".join(f"[{hit.document.id}] {hit.document.content}" for hit in hits)
        return "\n".join(
            f"{number}. {hit.document.title}\n   ID: {hit.document.id}\n   Score: {hit.score:.4f}\n"
            f"   Content: {hit.document.content}\n"
            for number, hit in enumerate(hits, 1)
        )

    # tools that only documents name

    @tool
    def unlock_discoverable_agent_tool(self, agent_tool_name: str) -> str:
        """Unlock a tool that a document names, so that it can be called. Answers with its description and parameters.

        agent_tool_name: the name of the tool, as the document has it
        """
        procedure = self._discovered(agent_tool_name, "call")
        self._unlocked.add(agent_tool_name)
        if self.company.size.brief:
            return f"unlocked {agent_tool_name}: {', '.join(name for _, name in procedure.arguments)}"
        return f"{shown(self._spec(procedure))}\n\nYou can now call it with {CALL}."

    @tool(writes=True)
    def call_discoverable_agent_tool(self, agent_tool_name: str, arguments: str = "{}") -> dict[str, Any]:
        """Call a tool that you have unlocked.

        agent_tool_name: the name of the tool
        arguments: its arguments as JSON, such as '{"id": "A-12345", "fee": 20}'
        """
        procedure = self._discovered(agent_tool_name, "call")
        if agent_tool_name not in self._unlocked:
            raise ValueError(f"the tool {agent_tool_name!r} is locked: unlock it first, with {UNLOCK}")
        return self._carry_out(procedure, self._arguments(procedure, arguments))

    @tool(writes=True)
    def give_discoverable_user_tool(self, discoverable_tool_name: str, arguments: str = "{}") -> dict[str, Any]:
        """Give the customer a tool, where a document says that the customer does it.

        discoverable_tool_name: the name of the tool, as the document has it
        arguments: the arguments that the customer is to use, as JSON, such as '{"id": "A-12345", "fee": 20}'
        """
        procedure = self._discovered(discoverable_tool_name, "give")
        values = self._arguments(procedure, arguments)
        return self._noted(procedure, values, "given")

    def _discovered(self, name: str, mode: str) -> Procedure:
        known = self.company.tools.get(name)
        if known is None or known.mode != mode:
            what = "to unlock" if mode == "call" else "to give to customers"
            raise ValueError(f"there is no tool {name!r} {what}: take the name from a document")
        return known

    def _spec(self, procedure: Procedure) -> ToolSpec:
        properties = {name: {"type": _TYPES[role]} for role, name in procedure.arguments}
        schema = {"type": "object", "properties": properties, "required": list(properties)}
        return ToolSpec(procedure.tool, f"{self._operation(procedure).doing.capitalize()}.", schema)

    def _operation(self, procedure: Procedure) -> Operation:
        return self.trade.operation(procedure.operation)

    def _arguments(self, procedure: Procedure, text: str) -> dict[Role, Any]:
        """The values that a tool is given, by role. ValueError, for the agent, says what is wrong."""
        try:
            given = parse_json(text)
        except ValueError as problem:
            raise ValueError(f"the arguments are no JSON: {problem}") from None
        names = [name for _, name in procedure.arguments]
        if not isinstance(given, dict) or sorted(given) != sorted(names):
            raise ValueError(f"{procedure.tool} takes the arguments {', '.join(names)}")
        found: dict[Role, Any] = {}
        for role, name in procedure.arguments:
            value = given[name]
            if _TYPES[role] == "number":
                if isinstance(value, bool) or not isinstance(value, (int, float)):
                    raise ValueError(f"{name} must be a number")
                value = float(value)
            elif not isinstance(value, str):
                raise ValueError(f"{name} must be a text")
            found[role] = value
        contract = self._contract(found["contract"])
        if contract["status"] != "active":
            raise ValueError(f"{self.trade.contract} {found['contract']} is {contract['status']}")
        before = self.db.orders.get(_order_key(procedure, found), {})
        if before.get("tool") == procedure.tool and all(
            before[role] == found[role] for role, _ in procedure.arguments[1:]
        ):
            raise ValueError(f"{procedure.tool} has been used for {self.trade.contract} {found['contract']} already")
        return found

    def _carry_out(self, procedure: Procedure, values: dict[Role, Any]) -> dict[str, Any]:
        operation, contract = self._operation(procedure), self._contract(values["contract"])
        becomes = operation.becomes
        contract[operation.field] = values.get("amount", values.get("target")) if becomes is None else becomes
        return self._noted(procedure, values, "done")

    def _noted(self, procedure: Procedure, values: dict[Role, Any], status: str) -> dict[str, Any]:
        """What was done, or given, as the database keeps it."""
        record = {self.trade.key: values["contract"], "tool": procedure.tool, "status": status}
        record |= {role: value for role, value in values.items() if role != "contract"}
        self.db.orders[_order_key(procedure, values)] = record
        return record

    @tool(kind="generic")
    def transfer_to_human_agents(self, summary: str) -> str:
        """Hand the customer over to a person.

        summary: what it is about, in one sentence
        """
        return "Transfer successful"


def _order_key(procedure: Procedure, values: Mapping[Role, Any]) -> str:
    """Of the record of what was done last with a contract by an operation."""
    return f"{procedure.operation} {values['contract']}"
