"""The `usage` object of chat and completions.

Source: https://platform.openai.com/docs/api-reference/chat/object#chat/object-usage.
"""

from __future__ import annotations


def usage_json(prompt: int, completion: int, *, cached: int = 0, reasoning: int = 0) -> bytes:
    """Usage as JSON; all counts in tokens, the details included."""
    return (
        b'{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,'
        b'"prompt_tokens_details":{"cached_tokens":%d,"audio_tokens":0},'
        b'"completion_tokens_details":{"reasoning_tokens":%d,"audio_tokens":0,'
        b'"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}'
    ) % (prompt, completion, prompt + completion, cached, reasoning)
