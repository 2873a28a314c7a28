"""The README's examples of the endpoints, and that it leaves none out."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from mockllm.exchange import Request
from tests.asking import Answer, Asker

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8").split("## Endpoints\n")[1].split("\n## ")[0]
EXAMPLES = re.findall(r"^curl .*$", TEXT, re.MULTILINE)
asker = Asker()


def curl(command: str) -> Answer:
    """What a curl command gets; it may have a URL, `-d` and `-F`."""
    url, *options = shlex.split(command)[1:]
    split = urlsplit(url)
    assert (split.scheme, split.netloc) == ("http", "127.0.0.1:8000")
    assert set(options[::2]) <= {"-d", "-F"}
    if "-d" in options:
        return asker.ask(split.path, options[1].encode())
    if not options:
        return asker.ask(split.path)
    fields = dict(option.split("=", 1) for option in options[1::2])
    files = {name: (ROOT / value[1:]).read_bytes() for name, value in fields.items() if value[0] == "@"}
    form = httpx.Request("POST", url, data={k: v for k, v in fields.items() if k not in files}, files=files)
    headers = {b"content-type": form.headers["content-type"].encode()}
    request = Request("POST", split.path, "", headers, form.read(), 1000.0, 1000.0)
    exchange = asker.app.exchange(request)
    return Answer(asker.app.handle(request, exchange), exchange)


@pytest.mark.parametrize("example", EXAMPLES, ids=[urlsplit(example.split()[1]).path for example in EXAMPLES])
def test_an_example_works(example: str) -> None:
    answer = curl(example)
    assert answer.status == 200
    assert answer.body


def test_every_section_has_an_example() -> None:
    sections = TEXT.split("\n### ")[1:]
    assert len(sections) >= 9
    assert [section.splitlines()[0] for section in sections if "\ncurl " not in section] == []


def test_every_endpoint_of_the_api_is_named() -> None:
    paths = asker.ask("/").json["endpoints"]
    ours = [path.removesuffix("/{id}") for path in paths if not path.startswith(("/mockllm", "/metrics"))]
    assert [path for path in ours if f"{path}`" not in TEXT and f"{path}/{{id}}`" not in TEXT] == []
