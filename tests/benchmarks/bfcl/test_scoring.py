"""BFCL's verdict on small tasks of our own: each error, what is passed over, and what the strict score adds."""

from __future__ import annotations

import pytest

from muarl.domains.tasks import Task
from muarl.types.chat import Message, ToolCall
from muarl.types.episode import Episode, StopReason, Turn, Verdict
from muarl_worlds.bfcl.domain import Bfcl
from muarl_worlds.bfcl.official.checker import judge
from muarl_worlds.bfcl.official.scoring import do_nothing, score, summary, turn_calls
from muarl_worlds.bfcl.official.strict import CUT, TOUCHED, strict

FILES = {"docs": {"type": "directory", "contents": {}}, "a.txt": {"type": "file", "content": "one"}}
CONFIG = {"GorillaFileSystem": {"root": {"home": {"type": "directory", "contents": FILES}}}}
TRUTH = [["cd(folder='docs')", "touch(file_name='x')"], [], ["ls()"]]
GOLD = [[["cd(folder='docs')"], ["touch(file_name='x')"]], [], [["ls()"]]]


def make(truth=TRUTH):
    data = {"involved_classes": ["GorillaFileSystem", "MathAPI"], "initial_config": CONFIG, "long_context": False}
    agenda = {"turns": ["say"] * len(truth), "brings": {}, "ground_truth": truth}
    return Task("t", "bfcl", "", None, initial_data=data, agenda=agenda, tags={"category": "base"})


@pytest.mark.parametrize(
    ("calls", "error", "turn"),
    [
        (GOLD, None, None),
        ([[["cd('docs')", "touch('x')"]], [], [["ls()", "pwd()"]]], None, None),
        ([GOLD[0], [["ls()"]], [["ls()"]]], None, None),
        ([GOLD[0], [["ls()"]], [["pwd()"]]], None, None),  # what was answered in an earlier turn counts
        ([[*GOLD[0], [], [""]], [], [["ls(a=False)"]]], None, None),
        ([GOLD[0], [["touch(file_name='y')", "rm(file_name='y')"]], [["ls()"]]], None, None),
        ([[["touch(file_name='x')"], ["cd(folder='docs')"]], [], [["ls()"]]], "instance_state_mismatch", 0),
        ([[["cd(folder='docs')"]], [], [["ls()"]]], "instance_state_mismatch", 0),
        ([GOLD[0], [["touch(file_name='y')"]], [["ls()"]]], "instance_state_mismatch", 2),
        ([GOLD[0], [], [["pwd()"]]], "execution_response_mismatch", 2),
        ([GOLD[0], [], [["ls(1, 2, 3)"]]], "execution_response_mismatch", 2),
        ([GOLD[0], [], []], "empty_turn_model_response", 2),
        ([GOLD[0], [], [[], [""]]], "empty_turn_model_response", 2),
        ([[], [], []], "empty_turn_model_response", 0),
        (GOLD[:2], "force_terminated", 2),
        ([*GOLD, []], "force_terminated", 4),
        (None, "inference_error", None),
    ],
)
def test_verdicts(calls, error, turn):
    for revision in ("v3", "v4"):
        for checked in (False, True):
            found = judge(Bfcl(revision), make(), calls, checked=checked)
            assert (found.valid, found.turn) == (error is None, turn)
            assert found.error_type == (None if error is None else f"multi_turn:{error}")


def test_texts_are_counted():
    task = make([["mean(numbers=[1])", "mean(numbers=[1])"]])
    once, twice = [[["mean(numbers=[1])"]]], [[["mean(numbers=[1])"], ["mean([1])"]]]
    assert not judge(Bfcl(), task, once).valid and judge(Bfcl(), task, twice).valid
    other = make([["mean(numbers=[1])"], ["mean(numbers=[1])"]])
    assert judge(Bfcl(), other, [once[0], [["ls()"]]]).valid


def test_the_strict_score_looks_at_turns_that_cannot_be_answered():
    harmless = judge(Bfcl(), make(), [GOLD[0], [["ls()"]], GOLD[2]])
    assert harmless.touched == () and strict(harmless).valid
    undone = judge(Bfcl(), make(), [GOLD[0], [["touch(file_name='y')"], ["rm(file_name='y')"]], GOLD[2]])
    assert undone.valid and undone.touched == ()
    truth = [["cd(folder='docs')"], [], ["touch(file_name='x')"]]
    early = judge(Bfcl(), make(truth), [[["cd('docs')"]], [["touch('x')"]], [["ls()"]]])
    assert early.valid and early.touched == (1,) and strict(early).error_type == TOUCHED
    last = judge(Bfcl(), make([["ls()"], []]), [[["ls()"]], [["touch('x')"]]])
    assert last.valid and strict(last).error_type == TOUCHED
    assert strict(harmless, cut=True).error_type == CUT
    assert strict(judge(Bfcl(), make(), None)).error_type == "multi_turn:inference_error"


def call(name, raw=None, invalid=None, **arguments):
    return ToolCall(name, name, arguments, raw=raw, invalid=invalid)


def messages(*calls_by_turn, stop=True):
    """A conversation: in each turn messages with calls, answered, then words."""
    made = [Message("assistant", "Hi!")]
    for steps in calls_by_turn:
        made.append(Message("user", "Do it."))
        for step in steps:
            made.append(Message("assistant", None, tuple(step)))
            made += [Message("tool", "{}", tool_call_id=c.id) for c in step if c.invalid is None]
        made.append(Message("assistant", "Done."))
    return [*made, Message("user", "###STOP###")] if stop else made


PLAYED = [[[call("cd", folder="docs")], [call("touch", raw="touch('x')")]], [], [[call("ls"), call("pwd")]]]


def test_calls_of_a_conversation():
    assert turn_calls(messages(*PLAYED)) == [[["cd(folder='docs')"], ["touch('x')"]], [], [["ls()", "pwd()"]]]
    broken = [call("ls"), call("cd", invalid="not JSON")]
    assert turn_calls(messages([broken])) == [[["ls()"]]]
    unanswered = [Message("user", "Do it."), Message("assistant", None, tuple(broken)), Message("user", "And?")]
    assert turn_calls(unanswered) == [[], []]
    assert turn_calls([Message("assistant", None, (call("ls"),))]) == []


def episode(spoken, stop=StopReason.USER_STOP, **fields):
    return Episode("e", "t", "bfcl", [Turn(m) for m in spoken], stop, **fields)


def test_verdicts_on_episodes():
    official, training, task = Bfcl(semantics="official"), Bfcl(), make()
    played = episode(messages(*PLAYED))
    found = score(task, official.world(task), played)
    assert (found.reward, found.breakdown, found.note) == (1.0, {"official": 1.0}, None)
    assert found.audit == {"official": 1.0, "strict": 1.0, "turns": 1.0}
    assert score(task, training.world(task), played).breakdown == {"strict": 1.0}
    guess = episode(messages(PLAYED[0], [[call("mkdir", dir_name="d")]], [[call("rmdir", dir_name="d")], *PLAYED[2]]))
    assert score(task, official.world(task), guess).audit == {"official": 1.0, "strict": 0.0, "turns": 1.0}
    assert score(task, training.world(task), guess).note == TOUCHED
    wrong = score(task, official.world(task), episode(messages(PLAYED[0], [], [])))
    assert (wrong.reward, wrong.note) == (0.0, "multi_turn:empty_turn_model_response")
    assert wrong.audit["turns"] == pytest.approx(2 / 3)


def test_cut_episodes():
    domain, task = Bfcl(semantics="official"), make()
    last = episode(messages(*PLAYED, stop=False), StopReason.MAX_TURNS)
    found = score(task, domain.world(task), last)
    assert (found.audit["official"], found.audit["strict"]) == (1.0, 0.0)
    early = score(task, domain.world(task), episode(messages(*PLAYED[:2], stop=False), StopReason.MAX_TURNS))
    assert early.note == "multi_turn:force_terminated"
    full = score(task, domain.world(task), episode(messages(*PLAYED, stop=False), StopReason.CONTEXT_FULL))
    assert full.note == "multi_turn:inference_error"


def test_doing_nothing_is_wrong():
    assert do_nothing(Bfcl(), make()).error_type == "multi_turn:empty_turn_model_response"


def test_figures():
    def one(category, official, firm):
        audit = {"official": official, "strict": firm}
        return episode([], tags={"category": category}, verdict=Verdict(official, {}, audit))

    some = [one("base", 1.0, 1.0), one("base", 0.0, 0.0), one("miss_func", 1.0, 0.0), episode([])]
    assert summary(some) == {"base": 0.5, "miss_func": 1.0, "strict_base": 0.5, "strict_miss_func": 0.0}
    every = [*some, one("miss_param", 0.0, 0.0), one("long_context", 1.0, 1.0)]
    assert summary(every)["overall"] == 0.625 and summary(every)["strict_overall"] == 0.375
    assert summary([]) == {}
