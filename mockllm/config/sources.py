"""Where settings come from: flags, then the environment, then a file, then the defaults.

Nothing here touches the process: the caller hands over the flags, the environment and a way to
read a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from mockllm.config.option import ENV_PREFIX, Option, options
from mockllm.config.values import Settings, check, read, split_list
from mockllm.errors import ConfigError, UnknownSettingError

S = TypeVar("S", bound=Settings)

CONFIG_FILE = Option(
    field="config",
    name="config",
    group="Server",
    help="TOML file with settings; its keys are the flags with underscores, such as ttft_ms.",
    kind="value",
    type=str,
    value_type=str,
    optional=False,
    default=None,
    metavar="FILE.toml",
    allowed="a readable TOML file",
)

GUIDELLM_PREFIX = "GUIDELLM_MOCK_SERVER_"

# A Kubernetes Service called `mockllm` puts MOCKLLM_PORT=tcp://10.0.0.1:8000 and its like into
# every pod of its namespace, this server's own too. None of them is a setting.
# Source: https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
_SERVICE_LINK = re.compile(
    rf"{ENV_PREFIX}(\w+_)?(SERVICE_(HOST|PORT)(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
)
_SERVICE_ADDRESS = re.compile(r"(tcp|udp|sctp)://\S+")


def load(
    settings: type[S],
    *,
    flags: Mapping[str, Sequence[str]],
    environ: Mapping[str, str],
    read_file: Callable[[str], bytes],
) -> S:
    """Gather the settings from all their sources.

    Args:
        settings: The struct to fill.
        flags: The texts given for each flag, by the setting's name; `config` names the file.
        environ: Environment variables. An empty one counts as not set.
        read_file: Gives a file's content, or raises OSError.

    Raises:
        ConfigError: A value is not allowed, a name is unknown, or the file cannot be read. The
            message is one line that names the flag, variable or file key.
    """
    known = {option.name: option for option in options(settings)}
    values = dict(_from_file(known, flags, environ, read_file))
    values |= _from_guidellm(known.values(), environ)
    values |= _from_environment(known, environ)
    for name, texts in flags.items():
        if name != CONFIG_FILE.name:
            option = known[name]
            values[option.field] = read(option, texts, option.flag)
    return settings(**values)


def nearest(name: str, known: Iterable[str], prefix: str = "") -> str | None:
    """The known name most like a misspelt one; None when none is.

    All begin with the prefix, which is not compared: it would make any two of them look alike.
    """
    import difflib  # 2 ms to import, and only ever needed on the way out

    bare = [other.removeprefix(prefix) for other in known]
    return next((prefix + match for match in difflib.get_close_matches(name.removeprefix(prefix), bare, n=1)), None)


def _from_environment(known: Mapping[str, Option], environ: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    by_env = {option.env: option for option in known.values()}
    for variable, text in environ.items():
        if not variable.startswith(ENV_PREFIX) or not text or variable == CONFIG_FILE.env:
            continue
        option = by_env.get(variable)
        if _SERVICE_LINK.fullmatch(variable) and (option is None or _SERVICE_ADDRESS.fullmatch(text)):
            continue
        if option is None:
            raise UnknownSettingError(variable, text, nearest(variable, [*by_env, CONFIG_FILE.env], ENV_PREFIX))
        yield option.field, _read_variable(option, text, variable)


def _from_guidellm(known: Iterable[Option], environ: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """guidellm reads its variables in any case, and so for its names do we; others are its own affair."""
    variables = {variable.upper(): variable for variable in environ if variable.upper().startswith(GUIDELLM_PREFIX)}
    if not variables:
        return
    for option in known:
        variable = variables.get(GUIDELLM_PREFIX + option.name.upper())
        if option.guidellm and variable is not None and environ[variable]:
            yield option.field, _read_variable(option, environ[variable], variable)


def _read_variable(option: Option, text: str, variable: str) -> Any:
    if option.kind != "list":
        return read(option, [text], variable)
    try:
        texts = split_list(option, text)
    except ValueError as error:
        shown = "***" if option.secret else text
        raise ConfigError(variable, shown, f"{option.allowed}, or a JSON array of them") from error
    return read(option, texts, variable)


def _from_file(
    known: Mapping[str, Option],
    flags: Mapping[str, Sequence[str]],
    environ: Mapping[str, str],
    read_file: Callable[[str], bytes],
) -> Iterator[tuple[str, Any]]:
    named, path = CONFIG_FILE.flag, next(iter(flags.get(CONFIG_FILE.name, ())), None)
    if path is None:
        named, path = CONFIG_FILE.env, environ.get(CONFIG_FILE.env) or None
    if path is None:
        return
    for key, value in _toml(named, path, read_file).items():
        option = known.get(key)
        if option is None:
            raise UnknownSettingError(f"{key} in {path}", value, nearest(key, known))
        yield option.field, check(option, value, f"{key} in {path}")


def _toml(named: str, path: str, read_file: Callable[[str], bytes]) -> dict[str, Any]:
    import tomllib  # 4 ms to import, and most starts name no file

    try:
        return tomllib.loads(read_file(path).decode())
    except OSError as error:
        raise ConfigError(named, path, f"{CONFIG_FILE.allowed} ({error.strerror or error})") from error
    except ValueError as error:  # not TOML, or not UTF-8
        raise ConfigError(named, path, f"{CONFIG_FILE.allowed} ({error})") from error
    except RecursionError as error:
        raise ConfigError(named, path, f"{CONFIG_FILE.allowed} (it is nested too deeply)") from error
