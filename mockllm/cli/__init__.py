"""The command line: finds the command, and turns errors into one line and an exit code."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from mockllm.errors import ConfigError

DEFAULT = "serve"

# Each command's module has `main(argv) -> int`. It is imported when asked for: the server's start
# does not wait for what another command needs.
COMMANDS = {
    "serve": "mockllm.cli.serve",
    "convert": "mockllm.cli.convert",
    "calibrate": "mockllm.cli.calibrate",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: The arguments after the program's name; the process's own when not given.

    Returns:
        The exit code, as `--help` documents it.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        command = arguments.pop(0) if arguments and not arguments[0].startswith("-") else DEFAULT
        if command not in COMMANDS:
            raise ConfigError("command", command, " or ".join(COMMANDS))
        code: int = importlib.import_module(COMMANDS[command]).main(arguments)
    except ConfigError as error:
        print(f"mockllm: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return code
