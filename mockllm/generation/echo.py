"""Echo: the reply is the last thing that the user said."""

from __future__ import annotations

from mockllm.errors import RequestError
from mockllm.generation.plan import Prompt
from mockllm.generation.tokens import Tokenizer


class Echo:
    """A `Content` that gives the text of the last user message, or of the last message where none is a user's.

    Args:
        tokenizer: Reads prompts of token ids.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def __call__(self, prompt: Prompt) -> str:
        if prompt.token_ids is not None:
            try:
                return self._tokenizer.decode(prompt.token_ids)
            except ValueError as error:
                raise RequestError(f"prompt: {error}.", param="prompt") from None
        for message in reversed(prompt.messages):
            if message.role in ("user", ""):
                return message.text
        return prompt.messages[-1].text if prompt.messages else ""
