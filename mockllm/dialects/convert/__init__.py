"""Chat Completions streams turned into Responses events.

A converter takes chunks one by one and gives the events that each of them makes:

    conv = ChatToResponses()
    for chunk in chunks:
        for event in conv.feed(chunk):
            ...
    for event in conv.finish():
        ...

`mockllm.aio.convert_stream` does the same over an asynchronous iterator.
"""

from mockllm.dialects.convert.chunks import ChatChunk
from mockllm.dialects.convert.converter import ChatToResponses, Profile, ResponseFields, make_id
from mockllm.dialects.responses_events import Response, StreamEvent, sse_frame
from mockllm.errors import ConversionError

__all__ = [
    "ChatChunk",
    "ChatToResponses",
    "ConversionError",
    "Profile",
    "Response",
    "ResponseFields",
    "StreamEvent",
    "make_id",
    "sse_frame",
]
