"""`POST /v1/audio/transcriptions` and `/v1/audio/translations`.

The file is never decoded: its bytes only key the answer.

Source: https://platform.openai.com/docs/api-reference/audio; the types of the `openai` package.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

import msgspec
from msgspec import Struct

from mockllm.dialects.dialect import Context, StepStream
from mockllm.dialects.jsontext import plain
from mockllm.errors import RequestError
from mockllm.exchange import Timeline
from mockllm.generation.plan import Choice, GenerationRequest, Message, Prompt, Segment
from mockllm.http.multipart import Part, parse_multipart

FORMATS = ("json", "text", "verbose_json")

BYTES_PER_TOKEN = 1600
"""How much of a file is counted as one input token: a tenth of a second at 128 kbit/s, as coarse as the
ten tokens a second that OpenAI counts."""


class AudioRequest(Struct, frozen=True):
    """The form, checked."""

    format: str
    language: str
    file_bytes: int


class Audio:
    """One of the two audio endpoints.

    Args:
        task: `transcribe` or `translate`.
    """

    id_prefix = "trsc-"

    def __init__(self, task: str) -> None:
        self._task = task

    def decode(self, content_type: bytes, body: bytes) -> tuple[AudioRequest, GenerationRequest]:
        """Read the form.

        Args:
            content_type: The request's `Content-Type`, which has the boundary.
            body: The form.

        Raises:
            RequestError: It is no form, a field is missing, or a value is not what it should be.
        """
        fields = {part.name: part for part in parse_multipart(content_type, body)}
        file = _required(fields, "file")
        if file.filename is None:
            raise RequestError("file must be a file, with a file name.", param="file")
        model = _required(fields, "model").text()
        format = _text(fields, "response_format", "json")
        if format not in FORMATS:
            raise RequestError(
                f"response_format must be one of {', '.join(FORMATS)}, got {format[:100]!r}.", param="response_format"
            )
        stream = _text(fields, "stream", "false").lower() in ("true", "1")
        digest = blake2b(file.body, digest_size=16).hexdigest()
        # The role is no part of the token count, but of what the answer is keyed by.
        prompt = Prompt(
            (Message(f"{self._task}:{digest}", _text(fields, "prompt", "")),),
            extra_tokens=-(-len(file.body) // BYTES_PER_TOKEN),
        )
        request = GenerationRequest(
            model,
            (prompt,),
            stream=stream,
            prompt_param="file",
            seed=_seed(fields),
            reasoning_effort="none",
            text_only=True,
        )
        language = "english" if self._task == "translate" else _text(fields, "language", "english")
        return AudioRequest(format, language, len(file.body)), request

    def whole(self, context: Context) -> bytes:
        """The body of a whole reply, in the format that was asked for."""
        asked: AudioRequest = context.body
        text = plain(_pieces(context))
        if asked.format == "text":
            return text.encode() + b"\n"
        if asked.format == "json":
            body: dict[str, object] = {"text": text}
            if self._task == "transcribe":
                body["usage"] = _usage(context)
            return msgspec.json.encode(body)
        seconds = asked.file_bytes / 16_000  # what 128 kbit/s would be
        segment = {
            "id": 0,
            "seek": 0,
            "start": 0.0,
            "end": seconds,
            "text": text,
            "tokens": [],
            "temperature": 0.0,
            "avg_logprob": -0.25,
            "compression_ratio": 1.0,
            "no_speech_prob": 0.0,
        }
        verbose: dict[str, object] = {
            "task": self._task,
            "language": asked.language,
            "duration": seconds,
            "text": text,
            "segments": [segment],
        }
        if self._task == "transcribe":
            verbose["usage"] = {"type": "duration", "seconds": seconds}
        return msgspec.json.encode(verbose)

    def stream(self, context: Context) -> Timeline:
        """Events `transcript.text.delta`, then `transcript.text.done`."""
        plan = context.plan
        return Timeline(plan.steps, StepStream(plan, _Writer(context)).render, plan.offset_s, plan.after_s)


class _Writer:
    def __init__(self, context: Context) -> None:
        self._context = context

    def open(self, choice: Choice) -> list[bytes]:
        return []

    def begin(self, choice: Choice, segment: Segment) -> list[bytes]:
        return []

    def tokens(self, choice: Choice, segment: Segment, first: int, upto: int, before: int) -> list[bytes]:
        return [
            b'data: {"type":"transcript.text.delta","delta":"%b"}\n\n' % piece for piece in segment.pieces[first:upto]
        ]

    def end(self, choice: Choice, segment: Segment) -> list[bytes]:
        return []

    def close(self, choice: Choice) -> list[bytes]:
        usage = msgspec.json.encode(_usage(self._context))
        return [b'data: {"type":"transcript.text.done","text":"%b","usage":%b}\n\n' % (_pieces(self._context), usage)]

    def finish(self) -> list[bytes]:
        return [b"data: [DONE]\n\n"]


def _pieces(context: Context) -> bytes:
    return b"".join([piece for segment in context.plan.choices[0].segments for piece in segment.pieces])


def _usage(context: Context) -> dict[str, object]:
    plan, prompt = context.plan, context.request.prompts[0]
    audio = prompt.extra_tokens
    return {
        "type": "tokens",
        "input_tokens": plan.prompt_tokens,
        "input_token_details": {"text_tokens": plan.prompt_tokens - audio, "audio_tokens": audio},
        "output_tokens": plan.completion_tokens,
        "total_tokens": plan.prompt_tokens + plan.completion_tokens,
    }


def _required(fields: Mapping[str, Part], name: str) -> Part:
    part = fields.get(name)
    if part is None or (part.filename is None and not part.body):
        raise RequestError(f"The form has no field {name!r}.", param=name)
    return part


def _text(fields: Mapping[str, Part], name: str, default: str) -> str:
    part = fields.get(name)
    return default if part is None else part.text()


def _seed(fields: Mapping[str, Part]) -> int | None:
    text = _text(fields, "seed", "")
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise RequestError(f"seed must be a whole number, got {text[:40]!r}.", param="seed") from None
