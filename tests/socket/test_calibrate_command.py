"""A small calibration, for real."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mockllm.cli import main


def test_the_command_calibrates_and_writes_both_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    json_file, html_file = tmp_path / "c.json", tmp_path / "c.html"
    argv = ["--streams", "2", "--max-streams", "4", "--output-tokens", "5", "--seconds", "0.3"]
    argv += ["--lateness-budget-ms", "100000", "--json", str(json_file), "--html", str(html_file)]
    assert main(["calibrate", *argv]) == 0
    out = capsys.readouterr().out
    assert "4 streams" in out
    rows = json.loads(json_file.read_text())["rows"]
    assert [(row["streams"], row["errors"]) for row in rows] == [(2, 0), (4, 0)]
    assert all(row["tokens_per_s"] > 0 and row["early"] == 0 for row in rows)
    assert html_file.read_text().startswith("<!doctype html>")
