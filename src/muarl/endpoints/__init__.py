"""An async client for any OpenAI-compatible server, made for many episodes at once.

It bounds concurrency, keeps deadlines, retries what may pass (rate limits, server errors, timeouts, cut connections,
broken replies) with jittered backoff, counts tokens and money, and turns every failure into one clear sentence. The API
key comes from the environment only and appears in no log line, exception or repr.
"""

from muarl.endpoints.client import Endpoint
from muarl.endpoints.config import EndpointSettings, Price, parse_endpoint
from muarl.endpoints.failures import EndpointFailure, PromptRefused
from muarl.endpoints.replies import Reply, read_tool_call

__all__ = [
    "Endpoint",
    "EndpointSettings",
    "EndpointFailure",
    "Price",
    "PromptRefused",
    "Reply",
    "parse_endpoint",
    "read_tool_call",
]
