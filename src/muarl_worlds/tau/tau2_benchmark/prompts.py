"""What TAU2 tells its agents and users, word for word, because scores are only comparable with the same words.

The texts are the benchmark's own (sierra-research/tau2-bench, MIT licence, Copyright Sierra Research).
"""

from __future__ import annotations

from muarl_worlds import data
from muarl_worlds.tau.tau2_benchmark.tasks import NAME

AGENT_PROMPT = """\
<instructions>
You are a customer service agent that helps the user according to the <policy> provided below.
In each turn you can either:
- Send a message to the user.
- Make a tool call.
You cannot do both at the same time.

Try to be helpful and always follow the policy. Always make sure you generate valid JSON only.
</instructions>
<policy>
{policy}
</policy>"""


def agent_prompt(policy: str) -> str:
    """The system prompt that TAU2 gives to an agent with this policy."""
    return AGENT_PROMPT.replace("{policy}", policy)


def user_guidelines(*, tools: bool = False) -> str:
    """The text that tells an LLM how to play the user; another one for users who have tools."""
    return data.read_text(NAME, f"user_simulator/simulation_guidelines{'_tools' if tools else ''}.md")
