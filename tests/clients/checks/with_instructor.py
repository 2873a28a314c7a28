"""Instructor: documents out of replies, by tools, by schema and as bare JSON.

What it needed that the API reference does not say:

- In its default mode it forces one tool by name, whose finish reason is `stop`, and refuses a
  reply that was cut (`length`).
- `Mode.JSON` asks for `json_object` and puts the schema into the prompt, which a mock does not
  read: such a reply is an object, but not the wanted one. `Mode.JSON_SCHEMA` sends the schema.
- Where a document does not validate, it asks again with the error as a further message.
"""

from __future__ import annotations

from functools import partial

import instructor
import openai
from harness import BASE, KEY, MODEL, QUESTION, answer, check, check_person, main, raised
from instructor.core import InstructorRetryException
from pydantic import BaseModel, field_validator

ROW = "instructor"
USER = [{"role": "user", "content": QUESTION}]


class Person(BaseModel):
    name: str
    age: int
    tags: list[str]


def client(mode: instructor.Mode = instructor.Mode.TOOLS, key: str = KEY):
    return instructor.from_openai(openai.OpenAI(base_url=BASE, api_key=key, max_retries=0), mode=mode)


@check(ROW, "structured")
def structured() -> None:
    for mode in (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA):
        person = client(mode).create(model=MODEL, messages=USER, response_model=Person)
        check_person(person.model_dump())


@check(ROW, "stream")
def stream() -> None:
    partials = list(client().create_partial(model=MODEL, messages=USER, response_model=Person))
    whole = client().create(model=MODEL, messages=USER, response_model=Person)
    assert len(partials) > 1
    assert partials[-1].model_dump() == whole.model_dump()


@check(ROW, "plain")
def plain() -> None:
    reply = client().create(model=MODEL, messages=USER, response_model=None)
    assert reply.choices[0].message.content == answer(("user", QUESTION))


@check(ROW, "tools")
def tools() -> None:
    """A call whose result is the validator's error, and the call that follows it."""
    seen = []

    class Doubted(Person):
        @field_validator("name")
        @classmethod
        def only_the_second(cls, name: str) -> str:
            seen.append(name)
            if len(seen) == 1:
                raise ValueError("another one, please")
            return name

    person = client().create(model=MODEL, messages=USER, response_model=Doubted, max_retries=2)
    assert seen == [seen[0], person.name]


@check(ROW, "errors")
def errors() -> None:
    wrong = client(key="wrong")
    asking = partial(wrong.create, model=MODEL, messages=USER, response_model=Person, max_retries=1)
    error = raised(InstructorRetryException, asking)
    assert "invalid_api_key" in str(error), error


main("instructor", "openai")
