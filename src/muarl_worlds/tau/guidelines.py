"""How TAU1 and TAU2 tell a language model to play their users."""

from __future__ import annotations

from muarl.users.guidelines import Guidelines, around_scenario

TAU1 = """\
You are a user interacting with an agent.

Instruction: {scenario}

Rules:
- Just generate one line at a time to simulate the user's message.
- Do not give away all the instruction at once. Only provide the information that is necessary for the current step.
- Do not hallucinate information that is not provided in the instruction. For example, if the agent asks for the order \
id but it is not mentioned in the instruction, do not make up an order id, just say you do not remember or have it.
- If the instruction goal is satisified, generate '###STOP###' as a standalone message without anything else to end \
the conversation.
- Do not repeat the exact instruction in the conversation. Instead, use your own words to convey the same information.
- Try to make the conversation as natural as possible, and stick to the personalities in the instruction."""
"""TAU1's own text, to the letter (sierra-research/tau-bench, MIT licence, Copyright Sierra)."""


def tau1_guidelines(*, tools: bool = False) -> Guidelines:
    """The first tau-bench's own text; its users have no ``tools``."""
    return Guidelines("tau1", TAU1)


def tau2_guidelines(*, tools: bool = False) -> Guidelines:
    """TAU2's official text for users with or without ``tools``. DataError if its data are not installed."""
    from muarl_worlds import data

    name = "simulation_guidelines_tools.md" if tools else "simulation_guidelines.md"
    return around_scenario("tau2", data.read_text("tau2", f"user_simulator/{name}"))
