"""What the README says is what the code does."""

from __future__ import annotations

import re
import tomllib

from mockllm.config import Config, load, options
from tests.flag_table import README, table, with_table

TEXT = README.read_text(encoding="utf-8")


def test_the_flag_table_is_current() -> None:
    assert with_table(TEXT) == TEXT, "run `python -m tests.flag_table`"


def test_the_table_has_a_row_for_each_setting_and_three_cells_a_row() -> None:
    rows = table().splitlines()
    for option in options(Config):
        cell = re.compile(rf"\| `--(\[no-\])?{option.flag[2:]}[` ]")
        assert sum(cell.match(row) is not None for row in rows) == 1
    assert {row.replace(r"\|", "").count("|") for row in rows} == {4}


def test_ci_runs_the_readmes_test_command() -> None:
    script = (README.parent / ".ci" / "run").read_text(encoding="utf-8")
    commands = [line for line in TEXT.splitlines() if "pytest" in line and line.startswith("python3 -m venv")]
    assert len(commands) == 1
    assert "README.md" in script  # it takes the command from there


def test_the_example_of_a_configuration_file_is_one() -> None:
    example = TEXT.split("```toml\n")[1].split("```")[0]
    config = load(Config, flags={"config": ["x"]}, environ={}, read_file=lambda _: example.encode())
    for name, value in tomllib.loads(example).items():
        assert getattr(config, name) == value
