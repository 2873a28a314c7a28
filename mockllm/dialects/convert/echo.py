"""One text sent in two fields, shown once.

LiteLLM sends an Anthropic model's thinking both as `reasoning_content` and in
`thinking_blocks`, in the same chunk or one after the other, and not always cut alike.
"""

from __future__ import annotations

from collections import deque
from typing import Literal

Field = Literal["string", "blocks"]


class Echo:
    """Holds back what the other field has already shown.

    The field that is ahead is shown; what the other one sends is compared with it and held back
    as long as it repeats it. At the first difference the held text turns out to be no repetition
    and is given out after all: nothing is lost. Work is linear in the text.
    """

    __slots__ = ("_ahead", "_held", "_leader", "_offset")

    def __init__(self) -> None:
        self._leader: Field = "string"
        self._ahead: deque[str] = deque()
        self._offset = 0
        self._held: list[str] = []

    def novel(self, field: Field, text: str) -> str:
        """What of `text` is to be shown now."""
        if field != self._leader:
            text = self._compare(text)
            if self._ahead or not text:
                return text
            self._leader = field
        self._ahead.append(text)
        return text

    def _compare(self, text: str) -> str:
        at = 0
        while at < len(text) and self._ahead:
            head = self._ahead[0]
            count = min(len(head) - self._offset, len(text) - at)
            if head[self._offset : self._offset + count] != text[at : at + count]:
                text = "".join((*self._held, text))
                self._ahead.clear()
                self._held.clear()
                self._offset = 0
                return text
            at += count
            self._offset += count
            if self._offset == len(head):
                self._ahead.popleft()
                self._offset = 0
        if self._ahead:
            self._held.append(text)
        else:
            self._held.clear()
        return text[at:]
