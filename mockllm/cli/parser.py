"""The command line of a settings struct: its flags and its help, derived from the options.

Only the shape of the command line is judged here. What a value means, and whether it is
allowed, is the settings' own business: flags give their texts, as the environment does.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from mockllm.config import CONFIG_FILE, Option, Settings, nearest, options
from mockllm.errors import ConfigError, UnknownSettingError
from mockllm.version import VERSION

_EPILOG = """\
Every setting may also be given as an environment variable (--ttft-ms as
MOCKLLM_TTFT_MS) or as a key of the --config file (ttft_ms = 50). A flag wins
over the environment, the environment over the file; an unknown MOCKLLM_*
variable or file key is an error. guidellm's GUIDELLM_MOCK_SERVER_* variables
are read where no MOCKLLM_* one is set.

Exit codes: 0 stopped as asked; 1 could not start or go on (a port in use,
say), or cut short by a second signal; 2 a setting that cannot be used; 130
interrupted before the server was up."""


_USAGE = "python -m mockllm [serve] [--SETTING VALUE ...]"
_DESCRIPTION = """\
Serve a mock LLM behind the APIs of OpenAI, vLLM and Anthropic, paced as asked.

Other commands (each has its own --help):
  python -m mockllm calibrate   find how many streams this machine can hold
  python -m mockllm convert     turn a Chat stream into the Responses API's"""


def read_flags(
    settings: type[Settings],
    argv: Sequence[str],
    *,
    usage: str = _USAGE,
    description: str = _DESCRIPTION,
    epilog: str = _EPILOG,
) -> dict[str, list[str]]:
    """Take a command line apart.

    Args:
        settings: The struct whose options are its flags.
        argv: The arguments, without the command's name.
        usage, description, epilog: What `--help` says besides the flags.

    Returns:
        The texts of each flag that was given, by the option's name.

    Raises:
        ConfigError: A flag is unknown or lacks its value.
        SystemExit: `--help` or `--version` was asked for, and printed.
    """
    known = (CONFIG_FILE, *options(settings))
    parser = _parser(known, usage, description, epilog)
    try:
        given, rest = parser.parse_known_args(list(argv))
    except argparse.ArgumentError as error:
        raise _shape_error(error, known) from error
    if rest:
        raise _unknown(rest[0], known)
    return {name: _texts(value) for name, value in vars(given).items()}


def _parser(known: Sequence[Option], usage: str, description: str, epilog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mockllm",
        usage=usage,
        description=description,
        epilog=epilog,
        formatter_class=_Formatter,
        add_help=False,
        allow_abbrev=False,
        exit_on_error=False,
        argument_default=argparse.SUPPRESS,
    )
    for heading, group in groupby(known, key=lambda option: option.group):
        section = parser.add_argument_group(heading)
        for option in group:
            _add(section, option)
    about = parser.add_argument_group("About")
    about.add_argument("-h", "--help", action="help", help="Show this and exit.")
    about.add_argument("--version", action="version", version=f"mockllm {VERSION}", help="Show the version and exit.")
    return parser


def _add(section: Any, option: Option) -> None:
    help = f"{option.help} (default: {option.default_text})".replace("%", "%%")
    if option.kind == "switch":
        section.add_argument(option.flag, dest=option.name, action=argparse.BooleanOptionalAction, help=help)
        if option.opposite is not None:
            text = f"The same as {_negated(option)}."
            section.add_argument(
                option.opposite, dest=option.name, action="store_false", default=argparse.SUPPRESS, help=text
            )
    else:
        section.add_argument(option.flag, dest=option.name, action="append", metavar=option.metavar, help=help)


def _texts(value: bool | list[str]) -> list[str]:
    return [str(value).lower()] if isinstance(value, bool) else value


def _shape_error(error: argparse.ArgumentError, known: Sequence[Option]) -> ConfigError:
    """argparse's two complaints: a value is missing, or a switch has one."""
    flag = (error.argument_name or "").split("/")[0]
    option = next((option for option in known if flag in (option.flag, option.opposite)), None)
    if option is None:  # --help=5
        return _misused(flag, "takes no value", "--help or --version")
    if option.kind == "switch":
        return _misused(flag, "takes no value", f"{option.flag} or {option.opposite or _negated(option)}")
    return _misused(flag, "needs a value", option.allowed)


def _misused(flag: str, what: str, allowed: str) -> ConfigError:
    error = ConfigError(flag, None, allowed)
    error.args = (f"{flag} {what}; allowed: {allowed}",)
    return error


def _unknown(argument: str, known: Sequence[Option]) -> ConfigError:
    if not argument.startswith("-"):
        return ConfigError("command line", argument, "flags, each before its value: --port 8000")
    flag, equals, text = argument.partition("=")
    flags = [option.flag for option in known] + [_negated(option) for option in known if option.kind == "switch"]
    flags += [option.opposite for option in known if option.opposite is not None]
    return UnknownSettingError(flag, text if equals else None, nearest(flag, flags, "--"))


def _negated(option: Option) -> str:
    return "--no-" + option.flag.removeprefix("--")


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Room for the longest flags, lines no longer than a page is wide, and no break in a value but after a comma."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=36)
        self._width = min(self._width, 100)

    def _split_lines(self, text: str, width: int) -> list[str]:
        what, default, value = text.partition("(default: ")
        whole = what + default.rstrip() + "\N{NO-BREAK SPACE}" * bool(default) + value.replace(",", ",\0 ")
        lines = textwrap.wrap(whole, width, break_on_hyphens=False)
        return [line.replace("\N{NO-BREAK SPACE}", " ").replace("\0 ", "").replace("\0", "") for line in lines]
