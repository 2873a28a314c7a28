"""`POST /tokenize` and `POST /detokenize`.

Source: vLLM's `TokenizeCompletionRequest`, `TokenizeChatRequest`, `DetokenizeRequest` and their
responses; `text` in place of `prompt` is what guidellm's mock server asks with and answers.
"""

from __future__ import annotations

import json
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from mockllm.dialects.decode import decoder
from mockllm.dialects.messages import ChatMessage, prompt_of
from mockllm.errors import RequestError
from mockllm.generation.tokens import Tokenizer


class TokenizeRequest(Struct):
    """The body of `/tokenize`: one of `prompt`, `text` and `messages`, the first that is there.

    The prompt is never put into a chat template, so `add_generation_prompt` and
    `add_special_tokens` change nothing: the tokens are those that `usage` counts.
    """

    model: str | None = None
    prompt: str | None = None
    text: str | None = None
    messages: list[ChatMessage] | None = None
    add_special_tokens: bool | None = None
    return_token_strs: bool | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None


class TokenizeReply(Struct):
    """The answer of `/tokenize`; `token_strs` is null unless it was asked for."""

    count: int
    max_model_len: int
    tokens: list[int]
    token_strs: list[str] | None


class DetokenizeRequest(Struct):
    """The body of `/detokenize`."""

    tokens: list[Annotated[int, Meta(ge=0)]]
    model: str | None = None


class DetokenizeReply(Struct):
    """The answer of `/detokenize`: the text under both of its names."""

    prompt: str
    text: str


read_tokenize = decoder(TokenizeRequest)
"""Decode the body of `/tokenize`; a `RequestError` if it is not what it should be."""

read_detokenize = decoder(DetokenizeRequest)
"""The same for `/detokenize`."""


def tokenize(asked: TokenizeRequest, tokenizer: Tokenizer, max_model_len: int) -> bytes:
    """Answer `/tokenize`.

    Args:
        asked: The decoded body.
        tokenizer: The server's.
        max_model_len: Context length in tokens.

    Returns:
        The reply's body. Of messages, the tokens of each one's text and calls stand one after the other.

    Raises:
        RequestError: Nothing is there to be read, or fields contradict each other.
    """
    if asked.add_generation_prompt and asked.continue_final_message:
        raise RequestError(
            "Invalid request, at $.continue_final_message: it cannot be true together with `add_generation_prompt`",
            param="continue_final_message",
        )
    texts = _texts(asked)
    tokens = [token for text in texts for token in tokenizer.encode(text)]
    strings = [piece for text in texts for piece in tokenizer.pieces(text)] if asked.return_token_strs else None
    return _encode(TokenizeReply(len(tokens), max_model_len, tokens, strings))


def detokenize(asked: DetokenizeRequest, tokenizer: Tokenizer) -> bytes:
    """Answer `/detokenize`.

    Args:
        asked: The decoded body.
        tokenizer: The server's.

    Returns:
        The reply's body.

    Raises:
        RequestError: An id has no text.
    """
    try:
        text = tokenizer.decode(asked.tokens)
    except ValueError as error:
        raise RequestError(f"Invalid request, at $.tokens: {error}", param="tokens") from None
    return _encode(DetokenizeReply(text, text))


def _texts(asked: TokenizeRequest) -> list[str]:
    for text in (asked.prompt, asked.text):
        if text is not None:
            return [text]
    if asked.messages is None:
        raise RequestError("Invalid request, at $.prompt: give `prompt`, `messages` or `text`", param="prompt")
    return [text for message in prompt_of(asked.messages).messages for text in message.texts]


def _encode(reply: Struct) -> bytes:
    try:
        return msgspec.json.encode(reply)
    except UnicodeEncodeError:
        # Lone surrogates, which ids can spell though a request cannot: only escapes can carry them.
        return json.dumps(msgspec.to_builtins(reply), separators=(",", ":")).encode()
