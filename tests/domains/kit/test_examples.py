"""examples/petty_cash.py and examples/notes_server.py: declarations that docs/kit.md points to."""

from __future__ import annotations

from pathlib import Path

from support.page_examples import module_of


def test_approval_is_asked_for_above_the_limit_and_the_policy_says_so(repository: Path) -> None:
    petty = module_of(repository / "examples" / "petty_cash.py").PETTY
    policy = petty.make_domain("small").policy_text
    assert "pay_receipt: by yourself up to $50.00; above that only with the approval of the bookkeeper." in policy
    tasks = petty.make_tasks("train", 40, size="small")
    asked = [task for task in tasks if task.actions[-1].name == "request_approval"]
    assert asked and all(task.tags["intent"] == "pay_receipt_declined" for task in asked)


def test_gold_actions_are_those_of_the_server_without_the_server(repository: Path) -> None:
    notes = module_of(repository / "examples" / "notes_server.py").NOTES
    task = next(one for one in notes.iter_tasks("train") if one.tags["intent"] == "archive")
    assert [action.name for action in task.actions][-2:] == ["create_directory", "move_file"]
