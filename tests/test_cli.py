"""The command line up to the start of the server: flags, help, and what is said when one is wrong."""

from __future__ import annotations

import importlib
import io
import re
from contextlib import redirect_stdout

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockllm import __version__
from mockllm.cli import COMMANDS, main
from mockllm.cli.parser import read_flags
from mockllm.cli.serve import read_config
from mockllm.config import CONFIG_FILE, Config, options
from mockllm.errors import ConfigError

OPTIONS = (CONFIG_FILE, *options(Config))


@pytest.fixture(autouse=True)
def _a_wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def shown(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """What a command line prints that prints and exits."""
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 0
    return capsys.readouterr().out


def test_flags_give_their_texts() -> None:
    argv = ["--ttft-ms", "50", "--seed=-5", "--no-cors", "--access-log", "--port", "1", "--port", "2"]
    assert read_flags(Config, argv) == {
        "ttft_ms": ["50"],
        "seed": ["-5"],
        "cors": ["false"],
        "access_log": ["true"],
        "port": ["1", "2"],
    }


def test_strict_is_the_opposite_of_lenient() -> None:
    assert read_flags(Config, ["--lenient", "--strict"]) == {"lenient": ["false"]}
    assert read_flags(Config, ["--strict", "--lenient"]) == {"lenient": ["true"]}
    assert read_flags(Config, ["--no-lenient"]) == read_flags(Config, ["--strict"])
    with pytest.raises(ConfigError, match="--strict takes no value; allowed: --lenient or --strict"):
        read_flags(Config, ["--strict=5"])


def test_a_flag_wins_over_the_environment() -> None:
    assert read_config(["--seed", "1"], {"MOCKLLM_SEED": "2", "MOCKLLM_ITL_MS": "3"}) == Config(seed=1, itl_ms=3)


@pytest.mark.parametrize("command", [[], ["serve"]])
def test_help_shows_every_flag_with_its_default_on_lines_of_a_page(
    capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    text = shown(capsys, *command, "--help")
    entries = re.split(r"\n(?=  -)", text)
    for option in OPTIONS:
        entry = next(entry for entry in entries if re.match(rf"  {option.flag}[, \n]", entry))
        assert f"(default: {option.default_text})" in re.sub(r",\n +", ",", entry)
        assert " ".join(option.help.split()) in " ".join(entry.split())
    assert max(map(len, text.splitlines())) <= 100
    assert text.isascii()


def test_help_has_a_heading_for_each_group_once(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, "--help")
    headings = re.findall(r"^(\w[\w ]*):$", text, re.MULTILINE)
    assert headings == [*dict.fromkeys(option.group for option in OPTIONS), "About"]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "--version") == f"mockllm {__version__}\n"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--port", "x"], "--port: 'x' is not valid; allowed: a whole number from 0 to 65535"),
        (["--ttft-ms", "-1"], "--ttft-ms: '-1' is not valid; allowed: a finite number >= 0"),
        (["serve", "--ttft-ms=-1"], "--ttft-ms: '-1' is not valid; allowed: a finite number >= 0"),
        (["--port"], "--port needs a value; allowed: a whole number from 0 to 65535"),
        (["--cors=yes"], "--cors takes no value; allowed: --cors or --no-cors"),
        (["--ttft", "5"], "--ttft: there is no such setting; did you mean --ttft-ms?"),
        (["--itl_ms=5"], "--itl_ms: there is no such setting (given '5'); did you mean --itl-ms?"),
        (["--no-core"], "--no-core: there is no such setting; did you mean --no-cors?"),
        (["-p", "5"], "-p: there is no such setting; --help lists all settings"),
        (["serve", "8000"], "command line: '8000' is not valid; allowed: flags, each before its value: --port 8000"),
        (["--help=3"], "-h takes no value; allowed: --help or --version"),
        (
            ["--admin-port", "1"],
            "admin_port: 1 is not valid; allowed: only with --workers; one process serves /mockllm/ itself",
        ),
        (["start"], f"command: 'start' is not valid; allowed: {' or '.join(COMMANDS)}"),
        (
            ["--config", "/no/such.toml"],
            "--config: '/no/such.toml' is not valid; allowed: a readable TOML file (No such file or directory)",
        ),
    ],
)
def test_a_wrong_command_line_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], argv: list[str], message: str
) -> None:
    assert main(argv) == 2
    printed = capsys.readouterr()
    assert printed.err == f"mockllm: {message}\n"
    assert printed.out == ""


def test_a_wrong_variable_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOCKLLM_ITL_MS", "-1")
    assert main([]) == 2
    assert capsys.readouterr().err == "mockllm: MOCKLLM_ITL_MS: '-1' is not valid; allowed: a finite number >= 0\n"


WORDS = st.one_of(
    st.sampled_from([*(option.flag for option in OPTIONS), "--no-cors", "--help", "--", "-", "-h", "serve"]),
    st.text(),
    st.builds("{}={}".format, st.sampled_from([option.flag for option in OPTIONS]), st.text()),
)


@given(st.lists(WORDS, max_size=6))
def test_no_command_line_does_worse_than_a_config_error_of_one_line(argv: list[str]) -> None:
    try:
        with redirect_stdout(io.StringIO()):
            read_config(argv, {})
    except ConfigError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either outcome is right
    except SystemExit as stop:
        assert stop.code == 0  # noqa: PT017 - help was asked for


def test_every_command_is_there() -> None:
    for module in COMMANDS.values():
        assert callable(importlib.import_module(module).main)
