"""Real clients against one live server, each in an environment of its own, side by side.

`python -m tests.clients` makes the environments; a client whose environment is not there is skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct, field

from mockllm import Config, ServerThread
from tests.clients.environments import ROOT, is_made, node, python_of
from tests.clients.matrix import CLIENTS, HERE, README, Client, table, with_table

KEY = "sk-mock-key-of-the-clients-suite"
MODEL = "mock-1"
TIMEOUT_S = 180
REQUIRED = os.environ.get("CLIENTS_REQUIRED", "").split()

CELLS = [(client, row, feature) for client in CLIENTS for row, features in client.rows.items() for feature in features]


class Outcome(Struct):
    """What came of one check."""

    row: str
    feature: str
    problem: str
    seconds: float


class Run(Struct):
    """A client's checks: running, then over."""

    process: subprocess.Popen[bytes]
    output: Path
    outcomes: dict[tuple[str, str], Outcome] | None = None
    versions: dict[str, str] = field(default_factory=dict)

    def wait(self) -> dict[tuple[str, str], Outcome]:
        """What came of the checks, by row and feature."""
        if self.outcomes is None:
            self.process.wait(TIMEOUT_S)
            self.outcomes = {}
            for line in self.output.read_text(encoding="utf-8").splitlines():
                told = json.loads(line) if line.startswith("{") else {}
                if "versions" in told:
                    self.versions = told["versions"]
                elif "feature" in told:
                    self.outcomes[told["row"], told["feature"]] = Outcome(**told)
        return self.outcomes


def is_there(client: Client) -> bool:
    return is_made(client.name) and (not client.npm or node() is not None)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Run]]:
    """All clients' checks, started together against one server."""
    folder = tmp_path_factory.mktemp("clients")
    config = Config(
        port=0,
        ttft_ms=2,
        itl_ms=0.1,
        output_tokens=24,
        model=MODEL,
        strict_model=True,
        api_key=(KEY,),
        tool_call_probability=1,  # agents leave it to the model whether it calls a tool
    )
    started: dict[str, Run] = {}
    with ServerThread(config) as server:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "MOCK_URL": server.base_url.removesuffix("/v1"),
            "MOCK_KEY": KEY,
            "MOCK_MODEL": MODEL,
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            # Whoever wants to leave this machine finds nobody, at once.
            "HTTP_PROXY": "http://127.0.0.1:9",
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "NO_PROXY": "127.0.0.1,localhost",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        for client in filter(is_there, CLIENTS):
            output = folder / f"{client.script}.out"
            program, script = str(python_of(client.name)), HERE / "checks" / client.script
            if client.npm:  # a module finds its packages beside itself
                program = node() or "node"
                shutil.copy(HERE / "checks" / "harness.mjs", ROOT / "node")
                script = Path(shutil.copy(script, ROOT / "node"))
            with output.open("wb") as stdout, output.with_suffix(".err").open("wb") as stderr:
                process = subprocess.Popen([program, str(script)], env=environment, stdout=stdout, stderr=stderr)
            started[client.script] = Run(process, output)
        yield started
        for run in started.values():
            run.process.kill()
            run.process.wait()


@pytest.mark.parametrize(
    ("client", "row", "feature"), CELLS, ids=[f"{row} {feature}".replace(" ", "-") for _, row, feature in CELLS]
)
def test_a_client_gets_what_it_wants(client: Client, row: str, feature: str, runs: dict[str, Run]) -> None:
    run = runs.get(client.script)
    if run is None:
        if (REQUIRED == ["all"] and not client.npm) or client.name in REQUIRED:
            pytest.fail(f"the environment of {client.name} is missing")
        pytest.skip(f"the environment of {client.name} is not made: python -m tests.clients {client.name}")
    outcome = run.wait().get((row, feature))
    if outcome is None:
        said = run.output.with_suffix(".err").read_text(encoding="utf-8")
        pytest.fail(f"it was not checked:\n{said[-3000:]}", pytrace=False)
    if outcome.problem:
        pytest.fail(outcome.problem, pytrace=False)


def test_the_versions_are_those_that_are_pinned(runs: dict[str, Run]) -> None:
    for client in CLIENTS:
        if client.script in runs:
            runs[client.script].wait()
            assert runs[client.script].versions[client.package] == client.version()


def test_the_matrix_is_whole(runs: dict[str, Run], capsys: pytest.CaptureFixture[str]) -> None:
    """Every cell of the clients that ran was checked, and nothing else; prints what came of them."""
    found = {key: outcome for run in runs.values() for key, outcome in run.wait().items()}

    def mark(row: str, feature: str) -> str:
        outcome = found.get((row, feature))
        return "not run" if outcome is None else "FAILED" if outcome.problem else "✓"

    if not runs:
        pytest.skip("no environment is made: python -m tests.clients")
    with capsys.disabled():
        print("", *table(mark), sep="\n")
    assert set(found) == {(row, feature) for client, row, feature in CELLS if client.script in runs}


def test_the_readme_has_the_matrix() -> None:
    text = README.read_text(encoding="utf-8")
    assert "\n".join(table()) in text
    assert with_table(text) == text, "run `python -m tests.clients.matrix`"
