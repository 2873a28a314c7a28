"""All settings of the server, each declared once.

To add one, add a field: its flag, environment variable, file key, help text, check and README
line follow from it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, field

from mockllm.config.option import setting
from mockllm.config.values import Settings
from mockllm.faults import KINDS, AnyFault

_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max", "default")

REASONING_TOKENS: dict[str, int] = {"minimal": 16, "low": 32, "medium": 128, "high": 512, "xhigh": 1024}
"""Tokens of reasoning for the efforts that a setting leaves out; `max` is as `xhigh`, and the others have none."""

_INT64 = {"ge": -(2**63), "le": 2**63 - 1}

SERVER = "Server"
TIMING = "Timing"
ANSWER = "Answers"
STREAM = "Streams"
FAULTS = "Faults"
TRUTH = "Truth"
LIMITS = "Limits"
LIFE = "Life cycle"
OUTPUT = "Output"


class Config(Settings, frozen=True, kw_only=True):
    """How the server is to behave. Immutable, and checked when made.

    Times are in the unit that the name ends in; `request_latency` is in seconds.

    Raises:
        ConfigError: A value is not allowed.
    """

    # Server
    host: Annotated[
        str, setting("Address to listen on.", group=SERVER, metavar="ADDRESS", min_length=1, guidellm=True)
    ] = "127.0.0.1"
    port: Annotated[
        int, setting("TCP port to listen on; 0 picks a free one.", group=SERVER, ge=0, le=65535, guidellm=True)
    ] = 8000
    uds: (
        Annotated[
            str,
            setting(
                "Listen on this Unix socket, in place of a TCP port. A dead server's file is replaced.",
                group=SERVER,
                metavar="PATH",
                min_length=1,
            ),
        ]
        | None
    ) = None
    uds_mode: Annotated[
        str,
        setting(
            "Permission bits of the Unix socket, octal.",
            group=SERVER,
            metavar="MODE",
            allowed="three or four octal digits, e.g. 0660",
            pattern="^[0-7]{3,4}$",
        ),
    ] = "0666"
    fd: (
        Annotated[
            int, setting("Serve on this inherited listening socket (systemd's are found without).", group=SERVER, ge=0)
        ]
        | None
    ) = None
    port_file: (
        Annotated[
            str,
            setting(
                "Write the port to this file once connections are accepted, for scripts with --port 0.",
                group=SERVER,
                metavar="FILE",
                min_length=1,
            ),
        ]
        | None
    ) = None
    ssl_certfile: (
        Annotated[
            str,
            setting("Serve TLS with this certificate chain (PEM).", group=SERVER, metavar="FILE", min_length=1),
        ]
        | None
    ) = None
    ssl_keyfile: (
        Annotated[
            str,
            setting(
                "Its private key (PEM), where it is not in the same file.", group=SERVER, metavar="FILE", min_length=1
            ),
        ]
        | None
    ) = None
    self_signed_certs: Annotated[
        bool, setting("Serve TLS with a certificate made at start (extra `tls`).", group=SERVER)
    ] = False
    workers: Annotated[
        int,
        setting("Number of server processes behind the one address.", group=SERVER, ge=1, le=4095, guidellm=True),
    ] = 1
    admin_port: (
        Annotated[
            int,
            setting(
                "With --workers: also serve /mockllm/ and /metrics on this port, and there alone the requests' "
                "records; 0 picks a free one.",
                group=SERVER,
                ge=0,
                le=65535,
            ),
        ]
        | None
    ) = None
    cors: Annotated[bool, setting("Send CORS headers with every reply.", group=SERVER)] = True
    admin: Annotated[bool, setting("Serve the server's own records under /mockllm/.", group=SERVER)] = True
    api_key: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...],
        setting(
            "Answer 401 to requests without this key; repeat it for more keys. Health and metrics stay open.",
            group=SERVER,
            metavar="KEY",
            allowed="a list of texts that are not empty",
            secret=True,
        ),
    ] = ()
    api_key_file: (
        Annotated[
            str,
            setting(
                "The same for the keys in this file, one a line; lines that begin with # are comments.",
                group=SERVER,
                metavar="FILE",
                min_length=1,
            ),
        ]
        | None
    ) = None
    admin_auth: Annotated[bool, setting("Ask for the API key under /mockllm/ too.", group=SERVER)] = False

    # Timing
    ttft_ms: Annotated[
        float, setting("Mean time from a request to its first token, in ms.", group=TIMING, ge=0, guidellm=True)
    ] = 150.0
    ttft_ms_std: Annotated[
        float, setting("Standard deviation of the time to first token, in ms.", group=TIMING, ge=0, guidellm=True)
    ] = 0.0
    itl_ms: Annotated[
        float,
        setting("Mean time from one token to the next, in ms; 0.25 is a quarter.", group=TIMING, ge=0, guidellm=True),
    ] = 10.0
    itl_ms_std: Annotated[
        float, setting("Standard deviation of the time between tokens, in ms.", group=TIMING, ge=0, guidellm=True)
    ] = 0.0
    request_latency: (
        Annotated[
            float,
            setting(
                "Mean time of a whole (not streamed) reply, in seconds, in place of TTFT plus the sum of ITLs.",
                group=TIMING,
                ge=0,
                guidellm=True,
            ),
        ]
        | None
    ) = None
    request_latency_std: Annotated[
        float, setting("Standard deviation of --request-latency, in seconds.", group=TIMING, ge=0, guidellm=True)
    ] = 0.0

    # Answers
    model: Annotated[
        str, setting("Name of the model that is served.", group=ANSWER, metavar="NAME", min_length=1, guidellm=True)
    ] = "llama-3.1-8b-instruct"
    served_model_name: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...],
        setting(
            "Name under which the model is listed, in place of --model; repeat it for more names.",
            group=ANSWER,
            metavar="NAME",
            allowed="a list of texts that are not empty",
        ),
    ] = ()
    strict_model: Annotated[bool, setting("Answer 404 to a request for a model that is not served.", group=ANSWER)] = (
        False
    )
    lenient: Annotated[
        bool,
        setting(
            "Accept whatever has some input; --strict, the default, refuses what the API refuses.",
            group=ANSWER,
            opposite="--strict",
        ),
    ] = False
    processor: (
        Annotated[
            str,
            setting(
                "Tokenizer: a tokenizer.json, its folder, or a name in the local Hugging Face cache "
                "(extra `tokenizers`); none is the built-in one.",
                group=ANSWER,
                metavar="PATH_OR_NAME",
                min_length=1,
                guidellm=True,
            ),
        ]
        | None
    ) = None
    content: Annotated[
        Literal["words", "echo"],
        setting("Free text: words of English, or an echo of the last user message, as long as it is.", group=ANSWER),
    ] = "words"
    overrides: Annotated[
        bool,
        setting(
            "Obey the body key mockllm and the headers x-mockllm-*, which change one request's answer.", group=ANSWER
        ),
    ] = True
    output_tokens: Annotated[int, setting("Mean number of tokens of a reply.", group=ANSWER, ge=1, guidellm=True)] = 128
    output_tokens_std: Annotated[
        float, setting("Standard deviation of the number of tokens.", group=ANSWER, ge=0, guidellm=True)
    ] = 0.0
    reasoning_tokens: Annotated[
        dict[Annotated[str, Meta(pattern=f"^({'|'.join(_EFFORTS)})$")], Annotated[int, Meta(ge=0, le=999_999)]],
        setting(
            "Tokens of reasoning for each reasoning_effort, `default` where a request names none; "
            "those left out keep their number, and `max` is as xhigh.",
            group=ANSWER,
            metavar="EFFORT=N,...",
            allowed=f"EFFORT=N,EFFORT=N, each EFFORT one of {', '.join(_EFFORTS)}, each N from 0 to 999999",
        ),
    ] = field(default_factory=REASONING_TOKENS.copy)
    reasoning_field: Annotated[
        Literal["reasoning_content", "reasoning", "both"],
        setting("Chat's field for reasoning text, in messages and deltas.", group=ANSWER),
    ] = "reasoning_content"
    tool_call_probability: Annotated[
        float,
        setting("How often a reply calls a tool where tool_choice is auto, 0 to 1.", group=ANSWER, ge=0, le=1),
    ] = 0.0
    tool_calls: Annotated[
        str,
        setting(
            "Tool calls in a reply that makes any: a number, or a range such as 1-3.",
            group=ANSWER,
            metavar="N|N-M",
            allowed="a number from 1 to 999, or a range of two such as 1-3",
            pattern=r"^[1-9][0-9]{0,2}(-[1-9][0-9]{0,2})?$",
        ),
    ] = "1"
    refusal_probability: Annotated[
        float, setting("How often a reply is a refusal, 0 to 1.", group=ANSWER, ge=0, le=1)
    ] = 0.0
    content_filter_probability: Annotated[
        float,
        setting("How often a reply is cut off by a content filter, 0 to 1.", group=ANSWER, ge=0, le=1),
    ] = 0.0
    image_tokens: Annotated[int, setting("Tokens that an image in a prompt counts.", group=ANSWER, ge=0)] = 765
    audio_tokens: Annotated[int, setting("Tokens that an audio recording in a prompt counts.", group=ANSWER, ge=0)] = (
        100
    )
    file_tokens: Annotated[int, setting("Tokens that a file in a prompt counts.", group=ANSWER, ge=0)] = 1000
    embedding_dimensions: Annotated[
        int,
        setting("Length of an embedding where the request names none.", group=ANSWER, ge=1, le=65536),
    ] = 1536
    max_model_len: Annotated[int, setting("Longest prompt and reply together, in tokens.", group=ANSWER, ge=1)] = 131072
    seed: Annotated[
        int, setting("The same seed and request give the same answer, in any process.", group=ANSWER, **_INT64)
    ] = 0
    key_header: (
        Annotated[
            str,
            setting(
                "Request header whose value keys the random draws, in place of counting equal requests.",
                group=ANSWER,
                metavar="HEADER",
                allowed="a header name, e.g. X-Request-Id",
                pattern=r"^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
            ),
        ]
        | None
    ) = None

    # Streams
    head_at: Annotated[
        Literal["arrival", "first-token"], setting("When a stream's HTTP head leaves.", group=STREAM)
    ] = "arrival"
    role_chunk: Annotated[
        Literal["with-first-token", "at-head", "none"],
        setting("When the chat chunk with the role leaves.", group=STREAM),
    ] = "with-first-token"
    opening_events: Annotated[
        Literal["at-head", "with-first-token"],
        setting("When the opening events of a Responses or Messages stream leave.", group=STREAM),
    ] = "at-head"

    # Faults
    faults: Annotated[
        tuple[AnyFault, ...],
        setting(
            "What goes wrong, and for which requests: kind=status,status=429,first=2. Repeat it for more; "
            "the first that strikes is the only one. Requests ask with the header x-mockllm-fault.",
            group=FAULTS,
            name="fault",
            metavar="kind=KIND,KEY=VALUE,...",
            allowed=f"kind=KIND,KEY=VALUE,..., the KIND one of {', '.join(KINDS)}",
        ),
    ] = ()
    rpm: (
        Annotated[
            int,
            setting(
                "Requests a minute of an API key (sliding window); more are answered 429. "
                "Each worker counts for itself.",
                group=FAULTS,
                ge=1,
            ),
        ]
        | None
    ) = None
    tpm: (
        Annotated[
            int,
            setting(
                "Tokens a minute of an API key, prompt and limit of each request; more is answered 429. "
                "Each worker counts for itself.",
                group=FAULTS,
                ge=1,
            ),
        ]
        | None
    ) = None

    # Truth
    truth_headers: Annotated[
        bool, setting("Send the planned timing and length as x-mockllm-* headers.", group=TRUTH)
    ] = True
    lateness_budget_ms: Annotated[
        float,
        setting("The server calls itself overloaded when its p99 lateness is above this, in ms.", group=TRUTH, ge=0),
    ] = 5.0
    ledger: (
        Annotated[
            str,
            setting(
                "Append a record of each request to this file, as JSON lines.",
                group=TRUTH,
                metavar="FILE",
                min_length=1,
            ),
        ]
        | None
    ) = None
    ledger_size: Annotated[
        int, setting("Number of records kept in memory, of all workers together.", group=TRUTH, ge=0)
    ] = 10_000
    ledger_tokens: Annotated[bool, setting("Record the planned and actual time of every chunk too.", group=TRUTH)] = (
        False
    )

    keep_bodies: (
        Annotated[
            int,
            setting(
                "Requests kept as they came, for /mockllm/requests/ID; none is 100 in an embedded server, 0 here "
                "and always with --workers.",
                group=TRUTH,
                ge=0,
            ),
        ]
        | None
    ) = None

    # Limits
    max_connections: Annotated[
        int,
        setting(
            "Open connections, shared out among the workers; more are answered 503 and closed. 0 is no limit.",
            group=LIMITS,
            ge=0,
        ),
    ] = 16_384
    max_request_line_bytes: Annotated[
        int, setting("Longest request line; more is answered 414.", group=LIMITS, ge=64)
    ] = 8192
    max_header_bytes: Annotated[int, setting("Longest request head; more is answered 431.", group=LIMITS, ge=256)] = (
        65_536
    )
    max_body_bytes: Annotated[int, setting("Longest request body; more is answered 413.", group=LIMITS, ge=0)] = (
        33_554_432
    )
    header_timeout_s: Annotated[
        float, setting("Time to receive a request's head, in seconds, then 408. 0 is no limit.", group=LIMITS, ge=0)
    ] = 10.0
    body_timeout_s: Annotated[
        float, setting("Time to receive a request's body, in seconds, then 408. 0 is no limit.", group=LIMITS, ge=0)
    ] = 60.0
    keep_alive_timeout_s: Annotated[
        float, setting("An idle connection is closed after this, in seconds. 0 is no limit.", group=LIMITS, ge=0)
    ] = 75.0
    write_timeout_s: Annotated[
        float,
        setting("A client that reads nothing is dropped after this, in seconds. 0 is no limit.", group=LIMITS, ge=0),
    ] = 60.0
    fast_parser: Annotated[
        bool, setting("Read plain request heads without h11; the replies are the same.", group=LIMITS)
    ] = True

    # Life cycle
    startup_delay_s: Annotated[
        float, setting("/health says 503 for this long after the start, in seconds.", group=LIFE, ge=0)
    ] = 0.0
    drain_delay_s: Annotated[
        float, setting("When stopped, serve for so long with /health at 503, in seconds.", group=LIFE, ge=0)
    ] = 0.0
    shutdown_timeout_s: Annotated[
        float, setting("When stopped, let running replies finish for so long, in seconds.", group=LIFE, ge=0)
    ] = 5.0

    # Output
    log_level: Annotated[
        Literal["debug", "info", "warning", "error", "critical"],
        setting("Least severe message that is printed.", group=OUTPUT),
    ] = "info"
    access_log: Annotated[bool, setting("Print a line for each request.", group=OUTPUT)] = False
    status: Annotated[bool, setting("Show a live line of rates and lateness, on a terminal.", group=OUTPUT)] = False
