"""BFCL's verdict on what a model called in an entry (multi_turn_checker and eval_runner), bug for bug.

The calls are run again in fresh objects, and beside them the ground truth in objects of its own. After each turn that
has a ground truth the two states must be equal, and every text that the ground truth got in this turn must be among
those that the model got so far. A turn without ground truth is passed over; ``CheckResult.touched`` says what the model
changed there, for the strict score.

What BFCL keeps for the life of its process (mutable defaults, shared long-context records) is not kept here: every
verdict is on the entry alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from muarl.domains.tasks import Task
from muarl_worlds.bfcl.domain import Bfcl
from muarl_worlds.bfcl.environment import Instances
from muarl_worlds.bfcl.official.decoding import is_empty
from muarl_worlds.bfcl.official.tasks import ground_truth

INFERENCE_ERROR = "multi_turn:inference_error"
FORCE_TERMINATED = "multi_turn:force_terminated"
EMPTY_TURN = "multi_turn:empty_turn_model_response"
STATE_MISMATCH = "multi_turn:instance_state_mismatch"
RESPONSE_MISMATCH = "multi_turn:execution_response_mismatch"

Steps = Sequence[Sequence[str]]
"""One turn's calls: the call strings of each of the model's messages."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A verdict. ``error_type``: BFCL's name for what is wrong, None if valid. ``turn``: where.

    ``passed``: how many turns were right before that. ``touched``: the turns without ground truth in which the model
    changed the state.
    """

    valid: bool
    error_type: str | None = None
    turn: int | None = None
    passed: int = 0
    touched: tuple[int, ...] = ()


def judge(domain: Bfcl, task: Task, calls: Sequence[Steps] | None, *, checked: bool = False) -> CheckResult:
    """The verdict on calls by turn and message; None: there are none, since inference failed.

    ``checked``: run both sides in the semantics of training (see ``Instances``). Messages without calls may be there
    and are passed over.
    """
    truth = ground_truth(task)
    if calls is None:
        return CheckResult(False, INFERENCE_ERROR)
    if len(calls) != len(truth):
        return CheckResult(False, FORCE_TERMINATED, turn=len(calls))
    model = domain.instances(task, label="model_eval", checked=checked)
    gold = domain.instances(task, label="model_ground_truth_eval", checked=checked)
    texts: dict[str, int] = {}
    touched: list[int] = []
    for turn, (written, wanted) in enumerate(zip(calls, truth, strict=True)):
        steps = [step for step in written if not is_empty(step)]
        before = model.copy() if steps and not wanted else None
        for step in steps:
            for call in step:
                text = model.execute(call).content
                texts[text] = texts.get(text, 0) + 1
        answers: dict[str, int] = {}
        for call in wanted:
            text = gold.execute(call).content
            answers[text] = answers.get(text, 0) + 1
        if before is not None and not equal_states(model, before):
            touched.append(turn)
        if not wanted:
            continue
        problem = None
        if not steps:
            problem = EMPTY_TURN
        elif not equal_states(model, gold):
            problem = STATE_MISMATCH
        elif any(texts.get(text, 0) < count for text, count in answers.items()):
            problem = RESPONSE_MISMATCH
        if problem is not None:
            return CheckResult(False, problem, turn, turn, tuple(touched))
    return CheckResult(True, passed=len(truth), touched=tuple(touched))


def equal_states(model: Instances, gold: Instances) -> bool:
    """Whether every public attribute of the gold objects is the same in the model's, as BFCL compares them."""
    for name, api in gold.apis.items():
        found = vars(model.apis[name])
        for key, value in vars(api).items():
            if key[0] != "_" and found.get(key, _MISSING) != value:
                return False
    return True


_MISSING = object()
