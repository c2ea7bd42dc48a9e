"""A completion of a prompt on its way."""

from __future__ import annotations

from typing import Any

from muarl.basics.web.json_api import invalid
from muarl.chat_formats.base import ChatFormat
from muarl_tools.serve_model import answers
from muarl_tools.serve_model.problems import refuse_endless, unsupported
from muarl_tools.serve_model.reading import TextRequest
from muarl_tools.serve_model.replies import TextReader
from muarl_tools.serve_model.turns import Choice, ChoiceDelta, Context, ServedModel, ServedRequest


class TextTurn(ServedRequest):
    """A completion of a prompt: nothing of it is read as a chat."""

    kind = "text_completion"

    def __init__(self, served: ServedModel, request: TextRequest, chat: ChatFormat) -> None:
        super().__init__(served, request.wanted, chat)
        self.request = request

    def _open(self) -> list[Choice]:
        prompt, tokenizer = self.request.prompt, self.chat.tokenizer
        if isinstance(prompt, str):
            if not self.served.raw_prompts:
                raise unsupported(
                    "prompt",
                    "text in which control tokens count needs a server that was started with --raw-prompts; send token "
                    "ids, or use /v1/chat/completions",
                )
            refuse_endless([prompt], self.served.context, tokenizer.encode, around=0)
            prompt = tuple(tokenizer.encode(prompt))
            if not prompt:
                raise invalid("becomes no token", "prompt")  # such as one of halves of characters only
        if min(prompt) < 0 or max(prompt) >= tokenizer.vocabulary_size:
            raise invalid(f"an id lies outside the vocabulary of {tokenizer.vocabulary_size}", "prompt")
        self.context = Context(list(prompt), None)
        stop_ids = (*self.chat.stop_ids, *self.request.stop_ids)
        params = [self._params(stop_ids, self.wanted.seed, n) for n in range(self.wanted.n)]
        return [Choice(n, TextReader(self.chat, stop_ids, self.wanted.stop), p, None, 0) for n, p in enumerate(params)]

    def _whole(self, choice: Choice) -> dict[str, Any]:
        out = self._part(choice, choice.reader.content, choice.reader.finish_reason)
        if self.wanted.logprobs:
            out["logprobs"] = answers.text_logprobs_json(self.chat, choice.sampled, choice.logprobs)
        return out | ({"token_ids": choice.sampled} if self.wanted.ids else {})

    def _begin(self, choice: Choice) -> list[dict[str, Any]]:
        return []

    def _chunks(self, news: ChoiceDelta) -> list[dict[str, Any]]:
        finish = news.choice.reader.finish_reason if news.over else None
        out = self._part(news.choice, "".join(p.text for p in news.pieces), finish)
        if self.wanted.logprobs and news.ids:
            out["logprobs"] = answers.text_logprobs_json(self.chat, news.ids, news.logprobs)
        if self.wanted.ids:
            out["token_ids"] = list(news.ids)
        return [out]

    def _keep(self, choice: Choice) -> None:
        """Nobody continues from a completion in the way of a conversation."""

    def _close(self) -> None:
        """Nothing is held."""

    def _part(self, choice: Choice, text: str, finish: str | None) -> dict[str, Any]:
        return {"index": choice.number, "text": text, "logprobs": None, "finish_reason": finish}
