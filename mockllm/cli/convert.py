"""`python -m mockllm convert`: a recorded chat stream on stdin, Responses events on stdout.

A filter: it writes what it can as soon as it can, so that it also stands between two living ends.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn, get_args

from mockllm.dialects.convert import ChatToResponses, ConversionError, Profile, StreamEvent, sse_frame
from mockllm.http.sse import ServerSentEvent, SSEDecoder

_READ_BYTES = 1 << 16

_DESCRIPTION = """\
Reads a Chat Completions stream (server-sent events, as a server sends them or
`curl -N` records them) from standard input and writes the Responses API's
stream for it to standard output, while it comes in.

Exit codes: 0 the whole input was converted; 1 the input is broken: the message
names the line, and what came before it has been written; 2 a wrong flag."""


class _UsageError(Exception):
    """A wrong flag, in the words of argparse."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _UsageError(message)


def main(argv: Sequence[str], stdin: Any = None, stdout: Any = None, stderr: Any = None) -> int:
    """Runs the filter.

    Args:
        argv: The arguments after `convert`.
        stdin, stdout: Binary streams, or text streams on top of one; the process's own when not given.
        stderr: A text stream; the process's own when not given.

    Returns:
        The exit code.
    """
    parser = _parser()
    stdin, stdout, stderr = stdin or sys.stdin, stdout or sys.stdout, stderr or sys.stderr
    source, target = getattr(stdin, "buffer", stdin), getattr(stdout, "buffer", stdout)
    try:
        flags = parser.parse_args(argv)
    except _UsageError as error:
        stderr.write(f"{parser.prog}: {error}; --help lists the flags\n")
        return 2
    if flags.help:
        target.write(parser.format_help().encode())
        return 0
    converter = ChatToResponses(flags.model, flags.profile, strict=flags.strict)
    try:
        problem = _run(converter, source, target)
    except BrokenPipeError:
        # Whoever reads has seen enough. The interpreter's own flush at exit must not stumble over it.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), target.fileno())
        return 0
    if problem:
        stderr.write(f"{parser.prog}: {problem}\n")
    return 1 if problem else 0


def _parser() -> _Parser:
    parser = _Parser(
        prog="mockllm convert",
        usage="python -m mockllm convert [--profile NAME] [--model NAME] [--strict]",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
    )
    parser.add_argument("-h", "--help", action="store_true", help="show this text and exit")
    parser.add_argument(
        "--profile",
        choices=get_args(Profile),
        default="openai",
        help="openai: what the Responses API would have sent (default); agents: event for event what the "
        "stream handler of openai-agents-python 0.11 to 0.16.0 emits; agents-0.16.1: that version's",
    )
    parser.add_argument("--model", metavar="NAME", help="model name, for provider-specific rules (gemini)")
    parser.add_argument("--strict", action="store_true", help="refuse choices other than 0 instead of leaving them out")
    return parser


def _run(converter: ChatToResponses, source: Any, target: Any) -> str:
    """Pumps the stream through; returns what is wrong with it, "" for nothing."""
    decoder = SSEDecoder()
    seen = False
    while data := source.read1(_READ_BYTES):
        for event in decoder.feed(data):
            if event.data.startswith(b"[DONE]"):
                _write(target, converter.finish())
                return ""
            problem = _convert(converter, event, target)
            if problem:
                return problem
            seen = True
    last = decoder.finish()
    if last is not None and not last.data.startswith(b"[DONE]"):
        problem = _convert(converter, last, target)
        if problem:
            return f"{problem}; the input ends here, in the middle of an event"
    elif last is None and not seen and decoder.unknown_line:
        return f"line {decoder.unknown_line}: this is no stream of server-sent events (`data: {{…}}` lines)"
    _write(target, converter.finish())
    return ""


def _convert(converter: ChatToResponses, event: ServerSentEvent, target: Any) -> str:
    if not event.data.strip():
        return ""
    try:
        _write(target, converter.feed(event.data))
    except ConversionError as error:
        place = f" (at {error.path})" if error.path != "$" else ""
        return f"line {event.line}: {error.message}{place}"
    return ""


def _write(target: Any, events: Sequence[StreamEvent]) -> None:
    if events:
        target.write(b"".join(map(sse_frame, events)))
        target.flush()
