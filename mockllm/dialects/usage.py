"""The `usage` object of chat and completions.

Source: https://platform.openai.com/docs/api-reference/chat/object#chat/object-usage.
"""

from __future__ import annotations

from mockllm.generation.plan import Plan


def usage_json(
    prompt: int,
    completion: int,
    *,
    cached: int = 0,
    reasoning: int = 0,
    prompt_audio: int = 0,
    accepted: int = 0,
    rejected: int = 0,
) -> bytes:
    """Usage as JSON; all counts in tokens, the details included.

    The tokens of a prediction that was rejected are no part of `completion`: nothing of them was sent.
    """
    return (
        b'{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,'
        b'"prompt_tokens_details":{"cached_tokens":%d,"audio_tokens":%d},'
        b'"completion_tokens_details":{"reasoning_tokens":%d,"audio_tokens":0,'
        b'"accepted_prediction_tokens":%d,"rejected_prediction_tokens":%d}}'
    ) % (prompt, completion, prompt + completion, cached, prompt_audio, reasoning, accepted, rejected)


def plan_usage(plan: Plan) -> bytes:
    """The usage of a whole answer."""
    return usage_json(
        plan.prompt_tokens,
        plan.completion_tokens,
        cached=plan.cached_tokens,
        reasoning=plan.reasoning_tokens,
        prompt_audio=plan.prompt_audio_tokens,
        accepted=plan.accepted_tokens,
        rejected=plan.rejected_tokens,
    )
