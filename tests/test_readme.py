"""What the README says is what the code does."""

from __future__ import annotations

import json
import re
import tomllib
from importlib import import_module

from mockllm.cli.serve import read_config
from mockllm.config import Config, load, options
from mockllm.http.refusals import MAX_HEADERS
from mockllm.protocol import READ_AHEAD_BYTES
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


def test_the_kubernetes_manifests_are_yaml_and_their_flags_exist() -> None:
    yaml = import_module("yaml")  # so that its types need no stubs
    deployment, service = yaml.safe_load_all(TEXT.split("```yaml\n")[1].split("```")[0])
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert read_config(container["args"], {}).host == "127.0.0.1"  # the image says 0.0.0.0
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    probes = [container[name]["httpGet"] for name in ("startupProbe", "readinessProbe")]
    assert all(probe == {"path": "/health", "port": "http"} for probe in probes)
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == service["spec"]["selector"] == labels
    assert service["spec"]["ports"][0]["targetPort"] in ports
    assert ports["http"] == Config().port
    config = read_config(container["args"], {})
    grace_s = deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    probe_s = container["readinessProbe"]["periodSeconds"] * 3  # after three failures, Kubernetes' default
    assert probe_s < config.drain_delay_s
    assert config.drain_delay_s + config.shutdown_timeout_s < grace_s


def test_the_dockerfile_starts_the_server_with_flags_that_exist() -> None:
    dockerfile = TEXT.split("```dockerfile\n")[1].split("```")[0]
    entry = json.loads(dockerfile.split("ENTRYPOINT ")[1])
    assert entry[:3] == ["python", "-m", "mockllm"]
    assert read_config(entry[3:], {}).host == "0.0.0.0"


def test_every_flag_in_the_readmes_text_exists() -> None:
    flags = {option.flag for option in options(Config)} | {"--config", "--help", "--version"}
    flags |= {f"--no-{option.flag[2:]}" for option in options(Config)}
    prose = TEXT.split("## Life and end")[1].split("## Work on it")[0]
    assert set(re.findall(r"`(--[a-z][a-z-]*)", prose)) <= flags


def test_the_readmes_limits_are_the_ones_there_are() -> None:
    prose = TEXT.split("## Limits and security")[1].split("## In Kubernetes")[0]
    assert str(MAX_HEADERS) in prose
    assert READ_AHEAD_BYTES == 64 * 1024
    assert "64 KiB" in prose
