"""BFCL's prompts, word for word (ShishirPatil/gorilla, Apache-2.0), because scores are only comparable with them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from muarl_worlds.bfcl.api import Revision

MORE_TOOLS = "I have updated some more functions you can choose from. What about now?"
"""What the user says in the turn that brings the missing functions."""

_FORM = "[func_name1(params_name1=params_value1, params_name2=params_value2...), func_name2(params)]"

_TASK = (
    "You are given a question and a set of possible functions. Based on the question, you will need to make one or "
    "more function/tool calls to achieve the purpose.{}If none of the functions can be used, point it out. If the "
    "given question lacks the parameters required by the function, also point it out."
)

_TURNS = (
    "At each turn, you should try your best to complete the tasks requested by the user within the current turn. "
    "Continue to output functions to call until you have fulfilled the user's request to the best of your ability. "
    "Once you have no more functions to call, the system will consider the current turn complete and proceed to the "
    "next turn or task."
)

_V3 = (
    "You are an expert in composing functions. " + _TASK.format("\n") + "\n"
    "You should only return the function calls in your response.\n\n"
    f"If you decide to invoke any of the function(s), you MUST put it in the format of {_FORM}\n"
    f"You SHOULD NOT include any other text in the response.\n\n{_TURNS}\n\n"
    "Here is a list of functions in JSON format that you can invoke.\n"
)

_V4 = (
    "You are an expert in composing functions." + _TASK.format(" ") + "\n\n"
    "You should only return the function calls in your response.\n\n"
    f"If you decide to invoke any of the function(s), you MUST put it in the format of {_FORM}. "
    f" You SHOULD NOT include any other text in the response.\n\n{_TURNS}\n\n"
    "Here is a list of functions in json format that you can invoke.\n"
)

_QWEN_HEAD = (
    "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>"
)

_QWEN_TAIL = (
    "\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
    '<tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n'
    "</tool_call>"
)


def prompt_system(docs: Sequence[Mapping[str, Any]], revision: Revision) -> str:
    """The system prompt of a model that writes its calls as a Python list, with the documents of its tools."""
    listed = list(map(dict, docs))
    if revision == "v3":
        return f"{_V3}{listed}\n\n"
    return f"{_V4}{json.dumps(listed, indent=4)}\n"


def qwen_system(docs: Sequence[Mapping[str, Any]], before: str = "") -> str:
    """The system prompt of Qwen's own function calling with the documents as they are, after a prompt of one's own."""
    if not docs:
        return before
    tools = "".join([f"\n{json.dumps(doc)}" for doc in docs])
    return (f"{before}\n\n" if before else "") + _QWEN_HEAD + tools + _QWEN_TAIL


def more_tools(docs: Sequence[Mapping[str, Any]]) -> str:
    """What the user says where missing functions come in words."""
    return f"{list(map(dict, docs))}\n{MORE_TOOLS}"
