"""Chat chunks whose sizes do not tell what is in them: `stream_options.include_obfuscation`.

Source: https://platform.openai.com/docs/api-reference/chat/create#chat-create-stream_options. The
API pads unless told not to; here padding is for those who ask for it.
"""

from __future__ import annotations

from hashlib import shake_128

from mockllm.dialects.dialect import Writer
from mockllm.generation.keyed import derive
from mockllm.generation.plan import Choice, Segment

PAD_BYTES = 16
"""A padded chunk's size is a multiple of this, apart from the padding's own key."""

_END = b"}\n\n"


class PaddedWriter:
    """Pads what another writer writes; see `Writer`.

    Args:
        writer: Writes the chunks.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._texts: dict[int, bytes] = {}

    def pad(self, choice: Choice, events: list[bytes]) -> list[bytes]:
        """The events of a choice with `obfuscation`: characters that mean nothing, from its key."""
        text = self._texts.get(choice.index)
        if text is None:
            text = self._texts[choice.index] = (
                shake_128(derive(choice.key, b"padding")).hexdigest(PAD_BYTES // 2).encode()
            )
        return [
            event[: -len(_END)] + b',"obfuscation":"%b"' % text[: -len(event) % PAD_BYTES or PAD_BYTES] + _END
            for event in events
        ]

    def open(self, choice: Choice) -> list[bytes]:
        return self.pad(choice, self._writer.open(choice))

    def begin(self, choice: Choice, segment: Segment) -> list[bytes]:
        return self.pad(choice, self._writer.begin(choice, segment))

    def tokens(self, choice: Choice, segment: Segment, first: int, upto: int, before: int) -> list[bytes]:
        return self.pad(choice, self._writer.tokens(choice, segment, first, upto, before))

    def end(self, choice: Choice, segment: Segment) -> list[bytes]:
        return self.pad(choice, self._writer.end(choice, segment))

    def close(self, choice: Choice) -> list[bytes]:
        return self.pad(choice, self._writer.close(choice))

    def finish(self) -> list[bytes]:
        return self._writer.finish()
