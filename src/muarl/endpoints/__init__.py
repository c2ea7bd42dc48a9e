"""An async client for any OpenAI-compatible server, made for many episodes at once.

It bounds concurrency, keeps deadlines, retries what may pass (rate limits, server errors, timeouts, cut connections,
broken replies) with jittered backoff, counts tokens and money, and turns every failure into one clear sentence. The API
key comes from the environment only and appears in no log line, exception or repr.
"""
