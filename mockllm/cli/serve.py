"""`python -m mockllm serve`: from the command line to settings."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from mockllm.cli.parser import read_flags
from mockllm.config import Config, load
from mockllm.errors import ConfigError


def main(argv: Sequence[str]) -> int:
    """Serve until a signal says stop.

    Args:
        argv: The arguments after the command.

    Returns:
        The exit code: 0 stopped as asked, 1 could not start or was cut short.

    Raises:
        ConfigError: A setting cannot be used.
    """
    config = read_config(argv, os.environ)
    set_up_logging(config.log_level)
    # They import the server: a wrong flag is answered without waiting for it.
    if config.workers > 1:
        from mockllm.cli.parent import run_workers

        return run_workers(config)
    from mockllm.cli.run import run

    return run(config)


def read_config(argv: Sequence[str], environ: Mapping[str, str]) -> Config:
    """The settings of this start, from all their sources.

    Raises:
        ConfigError: A setting cannot be used.
    """
    flags = read_flags(Config, argv)
    config = load(Config, flags=flags, environ=environ, read_file=lambda path: Path(path).read_bytes())
    if config.admin_port is not None and config.workers == 1:
        raise ConfigError("admin_port", config.admin_port, "only with --workers; one process serves /mockllm/ itself")
    return config


def set_up_logging(level: str, who: str = "") -> None:
    """Log to stderr: ours from `level` on, other libraries' from warnings on; each line says `who`."""
    number = logging.getLevelNamesMapping()[level.upper()]
    logging.basicConfig(
        level=max(number, logging.WARNING), format=f"%(asctime)s %(levelname)s %(name)s: {who}%(message)s"
    )
    logging.getLogger("mockllm").setLevel(number)
