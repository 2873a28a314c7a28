"""Whatever is sent to chat and completions, it is answered or refused in the API's shape, and never fails."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.answers import CHAT, COMPLETIONS, INPUT, Json, Mock
from tests.parameter_rows import At
from tests.parameter_table import ROWS

STRICT, LENIENT = Mock(), Mock(lenient=True)
INPUTS = ("model", "messages", "prompt")


def plain(value: Any) -> Any:
    return value.value if isinstance(value, At) else value


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**64), 2**64) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["type", "function", "name", "url", "image_url", "content", "role", "json_schema", "schema", "a"]
    ), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


def bodies(path: str, known: bool) -> st.SearchStrategy[Json]:
    """Bodies with any of the endpoint's fields, with values of the table (or with any at all)."""
    values: dict[str, list[Any]] = {}
    for row in ROWS:
        if path in row.endpoints and (not known or row.name not in INPUTS):
            values.setdefault(row.name, []).extend(map(plain, (*row.good, *row.bad)))
    fields = {name: st.sampled_from(some) if known else st.sampled_from(some) | JSON for name, some in values.items()}
    return st.lists(st.sampled_from(sorted(fields)), max_size=6, unique=True).flatmap(
        lambda names: st.fixed_dictionaries({name: fields[name] for name in names})
    )


def ask(mock: Mock, path: str, body: Json) -> int:
    """The status, once the whole reply is written."""
    body = {"model": "m", "max_tokens": 5} | INPUT[path] | body
    status, streamed, timeline = mock.send(path, body)
    frames = timeline.render(0, timeline.steps)
    if not streamed:
        reply = json.loads(b"".join(frames))
        assert ("error" in reply) == (status != 200)
        if status != 200:
            assert set(reply["error"]) == {"message", "type", "param", "code"}
            assert reply["error"]["message"]
    else:
        assert frames[-1] == b"data: [DONE]\n\n"
    return status


@settings(deadline=None, max_examples=1200)
@given(st.sampled_from([CHAT, COMPLETIONS]).flatmap(lambda path: st.tuples(st.just(path), bodies(path, False))))
def test_no_body_makes_a_server_fail(asked: tuple[str, Json]) -> None:
    path, body = asked
    assert ask(STRICT, path, body) in (200, 400)
    assert ask(LENIENT, path, body) in (200, 400)


@settings(deadline=None, max_examples=1200)
@given(st.sampled_from([CHAT, COMPLETIONS]).flatmap(lambda path: st.tuples(st.just(path), bodies(path, True))))
def test_a_lenient_server_answers_whatever_has_input(asked: tuple[str, Json]) -> None:
    path, body = asked
    if body.get("n") == 128:
        body = body | {"n": 2}
    assert ask(LENIENT, path, body) == 200


def test_a_body_of_faults_does_not_keep_a_lenient_server() -> None:
    messages = [{"role": "tool", "content": "4"}] * 300
    assert ask(LENIENT, CHAT, {"messages": messages}) == 400
