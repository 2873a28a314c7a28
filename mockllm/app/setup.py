"""Makes, out of the settings, what plans the answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mockllm.config import Config
from mockllm.config.settings import REASONING_TOKENS
from mockllm.generation import huggingface
from mockllm.generation.composer import Habits
from mockllm.generation.content import TextSource
from mockllm.generation.echo import Echo
from mockllm.generation.latency import Latency
from mockllm.generation.planner import Planner
from mockllm.generation.tokens import BuiltinTokenizer, Tokenizer


def make_tokenizer(config: Config, hub_cache: Path | None) -> tuple[Tokenizer, TextSource]:
    """The tokenizer, and a source of texts whose tokens are known.

    Args:
        config: The settings.
        hub_cache: The folder where `--processor` finds models by name; None for the usual place.

    Raises:
        ConfigError: The tokenizer cannot be used.
    """
    if config.processor is None:
        tokenizer = BuiltinTokenizer()
        return tokenizer, TextSource(tokenizer)
    return huggingface.load(config.processor, hub_cache)


def make_planner(config: Config, tokenizer: Tokenizer, text: TextSource, new_id: Callable[[str], str]) -> Planner:
    """The planner that answers as the settings say."""
    calls = sorted(map(int, config.tool_calls.split("-")))
    return Planner(
        tokenizer,
        text,
        Latency(
            config.ttft_ms / 1e3,
            config.ttft_ms_std / 1e3,
            config.itl_ms / 1e3,
            config.itl_ms_std / 1e3,
            config.request_latency,
            config.request_latency_std,
        ),
        seed=config.seed,
        max_model_len=config.max_model_len,
        new_id=new_id,
        habits=Habits(
            output_tokens=config.output_tokens,
            output_tokens_std=config.output_tokens_std,
            reasoning_tokens=_reasoning_tokens(config),
            call_probability=config.tool_call_probability,
            fewest_calls=calls[0],
            most_calls=calls[-1],
            refusal_probability=config.refusal_probability,
            filter_probability=config.content_filter_probability,
        ),
        content=Echo(tokenizer) if config.content == "echo" else None,
        media_tokens={"image": config.image_tokens, "audio": config.audio_tokens, "file": config.file_tokens},
    )


def _reasoning_tokens(config: Config) -> dict[str, int]:
    """Tokens of reasoning for each effort: what the setting leaves out keeps its number."""
    tokens = {**REASONING_TOKENS, **config.reasoning_tokens}
    return {"max": tokens["xhigh"]} | tokens
