"""Anthropic's Messages API, over the same plan as the others."""

from mockllm.dialects.anthropic.dialect import Messages
from mockllm.dialects.anthropic.errors import anthropic_error, speaks_anthropic

__all__ = ["Messages", "anthropic_error", "speaks_anthropic"]
