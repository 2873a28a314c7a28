"""Every setting, from every source; which source wins; and what is said when one is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct, to_builtins

from mockllm.config import Config, Option, Settings, load, options, setting
from mockllm.errors import ConfigError
from mockllm.faults.connection import Reset
from mockllm.faults.stream import Comments

OPTIONS = options(Config)
GUIDELLM = [option for option in OPTIONS if option.guidellm]


def files(**contents: str) -> Any:
    """A file system of TOML files; anything else is not there."""

    def read(path: str) -> bytes:
        if path not in contents:
            raise FileNotFoundError(2, "No such file or directory")
        return contents[path].encode()

    return read


def read_config(
    flags: Mapping[str, list[str]] | None = None, environ: Mapping[str, str] | None = None, toml: str | None = None
) -> Config:
    flags = dict(flags or {}) if toml is None else {"config": ["mock.toml"], **(flags or {})}
    return load(Config, flags=flags, environ=environ or {}, read_file=files(**{"mock.toml": toml or ""}))


_OTHER_TEXTS = {"uds_mode": "0640", "tool_calls": "2-3"}


def other_value(option: Option) -> Any:
    """A value that is allowed and is not the default."""
    if option.kind == "switch":
        return not option.default
    if option.name == "fault":
        return (Reset(at="after-head", nth=2), Comments())
    if option.kind == "list":
        return ("Other-Text", "second")
    if option.kind == "table":
        return {"low": 5, "default": 7}
    value_type = get_args(option.value_type)[0]
    if value_type is int:
        return (option.default or 0) + 1
    if value_type is float:
        return (option.default or 0.0) + 0.25
    if value_type is str:
        return _OTHER_TEXTS.get(option.name, "Other-Text")
    return next(choice for choice in get_args(value_type) if choice != option.default)


def toml(value: Any) -> str:
    if isinstance(value, tuple) and isinstance(value[0], Struct):
        tables = [", ".join([f"{key} = {toml(part)}" for key, part in to_builtins(each).items()]) for each in value]
        return f"[{', '.join([f'{{{table}}}' for table in tables])}]"
    if isinstance(value, dict):
        return f"{{{', '.join([f'{key} = {toml(part)}' for key, part in value.items()])}}}"
    return msgspec.json.encode(value).decode()  # JSON's scalars are TOML's


def texts(value: Any) -> list[str]:
    return [text(element) for element in value] if isinstance(value, tuple) else [text(value)]


def text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
class TestEveryOption:
    def test_comes_from_each_source(self, option: Option) -> None:
        value = other_value(option)
        from_sources = [
            read_config(flags={option.name: texts(value)}),
            read_config(environ={option.env: text(value)}),
            read_config(toml=f"{option.name} = {toml(value)}"),
            Config(**{option.field: value}),
        ]
        assert [getattr(config, option.field) for config in from_sources] == [value] * 4
        assert getattr(Config(), option.field) == option.default != value

    def test_is_described(self, option: Option) -> None:
        assert option.help[0].isupper() or option.help.startswith("/")
        assert option.help.endswith(".")
        assert option.help.isascii()  # --help must print on any terminal
        assert option.metavar.isascii()
        assert option.allowed

    def test_refuses_the_wrong_kind_in_one_line_that_names_it(self, option: Option) -> None:
        wrong: Any = {"a": 1}
        with pytest.raises(ConfigError) as caught:
            Config(**{option.field: wrong})
        shown = "***" if option.secret else wrong
        assert str(caught.value) == f"{option.field}: {shown!r} is not valid; allowed: {option.allowed}"

    def test_an_empty_variable_is_not_set(self, option: Option) -> None:
        assert read_config(environ={option.env: ""}) == Config()


@pytest.mark.parametrize("option", GUIDELLM, ids=lambda option: option.name)
def test_guidellms_variable_is_a_fallback_in_any_case(option: Option) -> None:
    value = other_value(option)
    for variable in (f"GUIDELLM_MOCK_SERVER_{option.name.upper()}", f"guidellm_mock_server_{option.name}"):
        assert getattr(read_config(environ={variable: text(value)}), option.field) == value


def test_guidellm_has_the_names_of_its_mock_server() -> None:
    assert {option.name: option.default for option in GUIDELLM} == {
        "host": "127.0.0.1",
        "port": 8000,
        "workers": 1,
        "model": "llama-3.1-8b-instruct",
        "processor": None,
        "request_latency": None,
        "request_latency_std": 0,
        "ttft_ms": 150,
        "ttft_ms_std": 0,
        "itl_ms": 10,
        "itl_ms_std": 0,
        "output_tokens": 128,
        "output_tokens_std": 0,
    }


def test_guidellms_other_variables_are_its_own_affair() -> None:
    assert read_config(environ={"GUIDELLM_MOCK_SERVER_SEED": "7", "GUIDELLM_MOCK_SERVER_TTFT": "x"}) == Config()


def test_a_flag_wins_over_the_environment_over_guidellms_over_the_file_over_the_default() -> None:
    sources: dict[str, Any] = {
        "flags": {"ttft_ms": ["1"]},
        "environ": {"MOCKLLM_TTFT_MS": "2", "GUIDELLM_MOCK_SERVER_TTFT_MS": "3"},
        "toml": "ttft_ms = 4",
    }
    assert read_config(**sources).ttft_ms == 1
    del sources["flags"]
    assert read_config(**sources).ttft_ms == 2
    del sources["environ"]["MOCKLLM_TTFT_MS"]
    assert read_config(**sources).ttft_ms == 3
    del sources["environ"]
    assert read_config(**sources).ttft_ms == 4
    assert read_config().ttft_ms == 150


def test_sources_complete_each_other() -> None:
    config = read_config(flags={"port": ["0"]}, environ={"MOCKLLM_SEED": "5"}, toml="itl_ms = 0.25\ncors = false")
    assert config == Config(port=0, seed=5, itl_ms=0.25, cors=False)


def test_the_last_of_a_repeated_flag_counts() -> None:
    assert read_config(flags={"port": ["1", "2"]}).port == 2


def test_the_file_is_named_by_flag_or_variable() -> None:
    read = files(**{"a.toml": "seed = 1", "b.toml": "seed = 2"})
    environ = {"MOCKLLM_CONFIG": "b.toml"}
    assert load(Config, flags={}, environ=environ, read_file=read).seed == 2
    assert load(Config, flags={"config": ["a.toml"]}, environ=environ, read_file=read).seed == 1


@pytest.mark.parametrize("none", ["none", "NONE", " None "])
def test_none_unsets_what_a_weaker_source_has_set(none: str) -> None:
    assert read_config(flags={"processor": [none]}, environ={"MOCKLLM_PROCESSOR": "x"}).processor is None


@pytest.mark.parametrize("word", ["true", "True", "1", "yes", "ON"])
def test_words_for_true(word: str) -> None:
    assert read_config(environ={"MOCKLLM_ACCESS_LOG": word}).access_log


@pytest.mark.parametrize("word", ["false", "FALSE", "0", "no", "off"])
def test_words_for_false(word: str) -> None:
    assert not read_config(environ={"MOCKLLM_CORS": word}).cors


def test_choices_are_taken_in_any_case() -> None:
    assert read_config(environ={"MOCKLLM_LOG_LEVEL": "WARNING"}).log_level == "warning"


NUMBER = "a finite number >= 0"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"flags": {"ttft_ms": ["-1"]}}, f"--ttft-ms: '-1' is not valid; allowed: {NUMBER}"),
        ({"flags": {"ttft_ms": ["fast"]}}, f"--ttft-ms: 'fast' is not valid; allowed: {NUMBER}"),
        ({"flags": {"itl_ms": ["nan"]}}, f"--itl-ms: 'nan' is not valid; allowed: {NUMBER}"),
        ({"flags": {"itl_ms": ["inf"]}}, f"--itl-ms: 'inf' is not valid; allowed: {NUMBER}"),
        (
            {"flags": {"request_latency": ["-0.1"]}},
            f"--request-latency: '-0.1' is not valid; allowed: {NUMBER}, or none",
        ),
        ({"flags": {"port": ["65536"]}}, "--port: '65536' is not valid; allowed: a whole number from 0 to 65535"),
        ({"flags": {"port": ["80.5"]}}, "--port: '80.5' is not valid; allowed: a whole number from 0 to 65535"),
        ({"flags": {"workers": ["0"]}}, "--workers: '0' is not valid; allowed: a whole number from 1 to 4095"),
        ({"flags": {"head_at": ["now"]}}, "--head-at: 'now' is not valid; allowed: arrival or first-token"),
        ({"flags": {"model": [""]}}, "--model: '' is not valid; allowed: a text that is not empty"),
        ({"environ": {"MOCKLLM_TTFT_MS": "-1"}}, f"MOCKLLM_TTFT_MS: '-1' is not valid; allowed: {NUMBER}"),
        ({"environ": {"MOCKLLM_CORS": "maybe"}}, "MOCKLLM_CORS: 'maybe' is not valid; allowed: true or false"),
        (
            {"environ": {"guidellm_Mock_Server_Port": "x"}},
            "guidellm_Mock_Server_Port: 'x' is not valid; allowed: a whole number from 0 to 65535",
        ),
        ({"toml": "ttft_ms = -1"}, f"ttft_ms in mock.toml: -1 is not valid; allowed: {NUMBER}"),
        ({"toml": "ttft_ms = '50'"}, f"ttft_ms in mock.toml: '50' is not valid; allowed: {NUMBER}"),
        ({"toml": "itl_ms = nan"}, f"itl_ms in mock.toml: nan is not valid; allowed: {NUMBER}"),
        ({"toml": "cors = 1"}, "cors in mock.toml: 1 is not valid; allowed: true or false"),
        (
            {"toml": "seed = 9223372036854775808"},
            "seed in mock.toml: 9223372036854775808 is not valid; allowed: "
            "a whole number from -9223372036854775808 to 9223372036854775807",
        ),
        (
            {"environ": {"MOCKLLM_TTFT": "5"}},
            "MOCKLLM_TTFT: there is no such setting (given '5'); did you mean MOCKLLM_TTFT_MS?",
        ),
        (
            {"environ": {"MOCKLLM_XQJZ": "5"}},
            "MOCKLLM_XQJZ: there is no such setting (given '5'); --help lists all settings",
        ),
        (
            {"toml": "itl-ms = 5"},
            "itl-ms in mock.toml: there is no such setting (given 5); did you mean itl_ms?",
        ),
        (
            {"flags": {"config": ["no.toml"]}},
            "--config: 'no.toml' is not valid; allowed: a readable TOML file (No such file or directory)",
        ),
        (
            {"environ": {"MOCKLLM_CONFIG": "no.toml"}},
            "MOCKLLM_CONFIG: 'no.toml' is not valid; allowed: a readable TOML file (No such file or directory)",
        ),
        (
            {"toml": f"fault = {'[' * 5000}"},
            "--config: 'mock.toml' is not valid; allowed: a readable TOML file (it is nested too deeply)",
        ),
        (
            {"toml": "port = = 1"},
            "--config: 'mock.toml' is not valid; allowed: a readable TOML file (Invalid value (at line 1, column 8))",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(source: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config(**source)
    assert str(caught.value) == message


def test_an_error_keeps_its_parts() -> None:
    with pytest.raises(ConfigError) as caught:
        Config(ttft_ms=-1)
    assert (caught.value.name, caught.value.value, caught.value.allowed) == ("ttft_ms", -1, NUMBER)


@pytest.mark.parametrize(
    "environ",
    [
        {"MOCKLLM_PORT": "tcp://10.0.0.1:8000", "MOCKLLM_SERVICE_HOST": "10.0.0.1", "MOCKLLM_SERVICE_PORT": "8000"},
        {"MOCKLLM_SERVICE_PORT_HTTP": "8000", "MOCKLLM_PORT_8000_TCP": "tcp://10.0.0.1:8000"},
        {"MOCKLLM_PORT_8000_TCP_PROTO": "tcp", "MOCKLLM_PORT_8000_TCP_ADDR": "10.0.0.1"},
        {"MOCKLLM_SERVER_PORT": "tcp://10.0.0.1:8000", "MOCKLLM_SERVER_SERVICE_HOST": "10.0.0.1"},
    ],
)
def test_what_kubernetes_puts_into_a_pod_is_no_setting(environ: dict[str, str]) -> None:
    assert read_config(environ=environ) == Config()


def test_the_struct_is_frozen_and_checked_when_changed() -> None:
    config = Config(ttft_ms=50)
    with pytest.raises(AttributeError):
        config.ttft_ms = 1.0  # type: ignore[misc]  # the point of the test
    with pytest.raises(ConfigError):
        msgspec.structs.replace(config, port=-1)
    assert isinstance(config.ttft_ms, float)
    assert hash(config) == hash(Config(ttft_ms=50.0))


def test_tokens_of_reasoning_are_pairs_as_text_and_a_table_elsewhere() -> None:
    table = {"low": 5, "default": 7}
    assert read_config(flags={"reasoning_tokens": ["low=5,default=7"]}).reasoning_tokens == table
    assert read_config(environ={"MOCKLLM_REASONING_TOKENS": "low=5,default=7"}).reasoning_tokens == table
    assert read_config(toml="[reasoning_tokens]\nlow = 5\ndefault = 7").reasoning_tokens == table
    option = next(option for option in OPTIONS if option.name == "reasoning_tokens")
    assert read_config(flags={"reasoning_tokens": [option.default_text]}) == Config()


@pytest.mark.parametrize("text", ["low", "low=x", "low=-1", "low=1000000", "lots=1", "low=1,,high"])
def test_what_is_no_table_of_reasoning(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^--reasoning-tokens: .* each EFFORT one of none, minimal, low"):
        read_config(flags={"reasoning_tokens": [text]})


def test_one_config_is_not_changed_by_what_is_done_to_anothers_table() -> None:
    Config().reasoning_tokens["high"] = 1
    assert Config().reasoning_tokens["high"] == 512


def test_its_text_is_short_and_keeps_secrets() -> None:
    config = Config(ttft_ms=50, api_key=("sk-secret",))
    assert repr(config) == f"Config(api_key=***, ttft_ms={50.0})"
    assert repr(Config()) == "Config()"


@given(st.floats())
def test_a_time_is_any_finite_number_from_zero_on(value: float) -> None:
    if value >= 0 and value != float("inf"):
        assert read_config(flags={"itl_ms": [repr(value)]}).itl_ms == Config(itl_ms=value).itl_ms == value
    else:
        with pytest.raises(ConfigError):
            Config(itl_ms=value)
        with pytest.raises(ConfigError):
            read_config(flags={"itl_ms": [repr(value)]})


@given(st.dictionaries(st.sampled_from([*OPTIONS]).map(lambda option: option.env), st.text()))
def test_no_text_in_a_variable_does_worse_than_a_config_error_of_one_line(environ: dict[str, str]) -> None:
    try:
        read_config(environ=environ)
    except ConfigError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either outcome is right


class Stall(Struct, frozen=True, tag="stall", tag_field="kind"):
    at_token: int
    seconds: float = 1.0


class Close(Struct, frozen=True, tag="close", tag_field="kind"):
    at_byte: int = 0


def range_of(text: str) -> list[str]:
    low, _, high = text.partition("-")
    return [low, high or low]


class Wide(Settings, frozen=True, kw_only=True):
    """Settings of the shapes that `Config` may come to have."""

    keys: Annotated[tuple[str, ...], setting("Keys.", group="Lists", name="key")] = ()
    ports: Annotated[tuple[Annotated[int, Meta(ge=1)], ...], setting("Ports.", group="Lists")] = (80,)
    faults: Annotated[tuple[Stall | Close, ...], setting("Faults.", group="Lists", name="fault")] = ()
    efforts: Annotated[dict[str, int], setting("Tokens per effort.", group="Tables")] = {}
    calls: Annotated[tuple[int, int], setting("From-to.", group="Tables", parse=range_of, allowed="2 or 1-3")] = (1, 1)


def read_wide(**sources: Any) -> Wide:
    given = {"flags": {}, "environ": {}, "read_file": files(**{"w.toml": sources.pop("toml", "")})} | sources
    return load(Wide, **given)


@pytest.mark.parametrize(
    ("name", "flag", "variable", "file", "value"),
    [
        ("keys", ["a", "b,c"], '["a", "b,c"]', 'key = ["a", "b,c"]', ("a", "b,c")),
        ("keys", ["a", "b"], "a, b", 'key = ["a", "b"]', ("a", "b")),
        ("ports", ["1", "2"], "1,2", "ports = [1, 2]", (1, 2)),
        (
            "faults",
            ["kind=stall,at_token=3,seconds=0.5", '{"kind": "close"}'],
            'kind=stall,at_token=3,seconds=0.5; {"kind": "close"}',
            "[[fault]]\nkind = 'stall'\nat_token = 3\nseconds = 0.5\n[[fault]]\nkind = 'close'",
            (Stall(3, 0.5), Close()),
        ),
        ("efforts", ["low=1,high=9"], '{"low": 1, "high": 9}', "efforts = {low = 1, high = 9}", {"low": 1, "high": 9}),
        ("calls", ["2-3"], "2-3", "calls = [2, 3]", (2, 3)),
    ],
)
def test_lists_and_tables_from_each_source(name: str, flag: list[str], variable: str, file: str, value: Any) -> None:
    option = next(option for option in options(Wide) if option.field == name)
    assert getattr(read_wide(flags={option.name: flag}), name) == value
    assert getattr(read_wide(environ={option.env: variable}), name) == value
    assert getattr(read_wide(flags={"config": ["w.toml"]}, toml=file), name) == value
    assert getattr(Wide(**{name: value}), name) == value


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        (
            {"flags": {"ports": ["1", "0"]}},
            "--ports: ['1', '0'] is not valid; allowed: any number of: a whole number >= 1",
        ),
        ({"flags": {"fault": ["kind=stall"]}}, "allowed: for at_token: a whole number; it has to be given"),
        ({"flags": {"fault": ["kind=stall,at_token=1,seconds=inf"]}}, "--fault: 'kind=stall,at_token=1,seconds=inf'"),
        ({"flags": {"fault": ["stall"]}}, "allowed: any number of: a table of one of the kinds stall, close"),
        ({"environ": {"MOCKLLM_FAULT": "[1"}}, "MOCKLLM_FAULT: '[1' is not valid; allowed: any number of: a table"),
        ({"flags": {"efforts": ["low"]}}, "allowed: pairs name=value, each value a whole number"),
        ({"flags": {"calls": ["x"]}}, "--calls: 'x' is not valid; allowed: 2 or 1-3"),
    ],
)
def test_what_is_wrong_in_a_list_or_table(sources: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_wide(**sources)
    assert message in str(caught.value)


def test_a_field_that_is_no_setting_is_a_bug_and_says_so() -> None:
    class Bare(Settings, frozen=True, kw_only=True):
        field: int = 1

    with pytest.raises(TypeError, match="field 'field' has no setting"):
        Bare()
