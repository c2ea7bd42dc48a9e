"""The contacts' tools without their server."""

from __future__ import annotations

import json
from typing import Any

from muarl.domains.base import Domain
from muarl.domains.tooling import tool


class MemoryRehearsal(Domain):
    """Answers as the server does."""

    name = "mcp-memory"

    @tool
    def open_nodes(self, names: list[str]) -> str:
        """Entities by their names, and the relations around them."""
        return self._around([name for name in self.db["entities"] if name in names])

    @tool
    def search_nodes(self, query: str) -> str:
        """Entities in which a text stands, and the relations around them."""
        wanted = query.lower()
        return self._around(
            [
                name
                for name, entity in self.db["entities"].items()
                if any(wanted in text.lower() for text in (name, entity["entityType"], *entity["observations"]))
            ]
        )

    @tool(writes=True)
    def create_entities(self, entities: list[dict[str, Any]]) -> str:
        """Enter entities."""
        for entity in entities:
            self.db["entities"].setdefault(
                entity["name"], {"entityType": entity["entityType"], "observations": entity["observations"]}
            )
        return json.dumps(entities, indent=2, ensure_ascii=False)

    @tool(writes=True)
    def add_observations(self, observations: list[dict[str, Any]]) -> str:
        """Add observations to entities."""
        for more in observations:
            self._entity(more["entityName"])["observations"] += more["contents"]
        return json.dumps(observations, indent=2, ensure_ascii=False)

    @tool(writes=True)
    def create_relations(self, relations: list[dict[str, str]]) -> str:
        """Enter relations."""
        for relation in relations:
            self.db["relations"][f"new {relation['from']} {relation['to']}"] = dict(relation)
        return json.dumps(relations, indent=2, ensure_ascii=False)

    @tool(writes=True)
    def delete_entities(self, entityNames: list[str]) -> str:
        """Delete entities, with the relations around them."""
        for name in entityNames:
            self.db["entities"].pop(name, None)
            self._drop(lambda relation, name=name: name in (relation["from"], relation["to"]))
        return "Entities deleted successfully"

    @tool(writes=True)
    def delete_observations(self, deletions: list[dict[str, Any]]) -> str:
        """Delete observations of entities."""
        for deletion in deletions:
            entity = self._entity(deletion["entityName"])
            entity["observations"] = [o for o in entity["observations"] if o not in deletion["observations"]]
        return "Observations deleted successfully"

    @tool(writes=True)
    def delete_relations(self, relations: list[dict[str, str]]) -> str:
        """Delete relations."""
        self._drop(lambda relation: dict(relation) in relations)
        return "Relations deleted successfully"

    def _around(self, names: list[str]) -> str:
        found = [{"name": name, **self.db["entities"][name]} for name in names]
        links = [link for link in self.db["relations"].values() if link["from"] in names or link["to"] in names]
        return json.dumps({"entities": found, "relations": links}, indent=2, ensure_ascii=False)

    def _entity(self, name: str) -> Any:
        if name not in self.db["entities"]:
            raise ValueError(f"Entity with name {name} not found")
        return self.db["entities"][name]

    def _drop(self, fits: Any) -> None:
        for key in [key for key, relation in self.db["relations"].items() if fits(relation)]:
            del self.db["relations"][key]
