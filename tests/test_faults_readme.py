"""The README's table of faults: every kind has a row, and both forms of a row are the same fault."""

from __future__ import annotations

import json
import re

from mockllm.config import Config, options, read
from mockllm.faults import KINDS
from tests.flag_table import README

SECTION = README.read_text(encoding="utf-8").split("## Faults on demand\n")[1].split("\n## ")[0]
ROWS = re.findall(r"^\| [^|*]+ \| `(kind=[^`]*)` \| `(\{[^`]*\})` \| [^|]+ \|$", SECTION, re.M)
OPTION = next(option for option in options(Config) if option.name == "fault")


def test_every_kind_has_a_row() -> None:
    assert {json.loads(form)["kind"] for _, form in ROWS} == set(KINDS)
    assert len(ROWS) == SECTION.count("| `kind=")


def test_both_forms_of_a_row_are_the_same_fault() -> None:
    for flag, form in ROWS:
        assert read(OPTION, [flag], "--fault") == Config(faults=(json.loads(form),)).faults


def test_the_matchers_are_keys() -> None:
    keys = re.findall(r"^\| `(\w+=[^`]*)` \|", SECTION, re.M)
    for key in keys:
        assert read(OPTION, [f"kind=crlf,{key}"], "--fault")
    assert len(keys) == 7
