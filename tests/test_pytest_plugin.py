"""The fixture with scripts, in the test runs of other projects."""

from __future__ import annotations

import pytest

CLIENT = """
import json
import urllib.request

import pytest

def ask(server, text="Hello"):
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    request = urllib.request.Request(
        server.base_url + "/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)["choices"][0]["message"]["content"]
"""


def outcomes(pytester: pytest.Pytester, tests: str, ini: str = "") -> pytest.RunResult:
    pytester.makepyfile(CLIENT + tests)
    pytester.makeini("[pytest]\n" + ini)
    # By its module's name, whether or not an installed mockllm has brought it in by its own.
    return pytester.runpytest("-p", "no:mockllm", "-p", "mockllm.pytest_plugin", "--strict-markers")


def test_scripts_and_requests(pytester: pytest.Pytester) -> None:
    result = outcomes(
        pytester,
        """
def test_two_turns(mockllm_server):
    mockllm_server.script([{"text": "one"}, {"text": "two"}])
    assert [ask(mockllm_server, "a"), ask(mockllm_server, "b")] == ["one", "two"]
    assert [request.json()["messages"][0]["content"] for request in mockllm_server.requests] == ["a", "b"]

def test_each_test_has_its_own(mockllm_server):
    assert not mockllm_server.requests
    assert not mockllm_server.script_state().used
""",
    )
    result.assert_outcomes(passed=2)


LEAVES = """
def test_leaves_one(mockllm_server):
    mockllm_server.script([{"text": "one"}, {"text": "two"}])
    assert ask(mockllm_server) == "one"
"""
MISSES = """
def test_misses_one(mockllm_server):
    mockllm_server.script([{"text": "one"}])
    ask(mockllm_server, "first")
    ask(mockllm_server, "second")
"""
MARK = "@pytest.mark.mockllm(script_must_be_used=True)"
INI = "mockllm_script_must_be_used = true\n"


def test_an_unused_reply_is_nobodys_fault_unless_asked(pytester: pytest.Pytester) -> None:
    outcomes(pytester, LEAVES + MISSES).assert_outcomes(passed=2)


@pytest.mark.parametrize("ini", [False, True])
def test_unused_and_missing_replies_fail_the_test(pytester: pytest.Pytester, ini: bool) -> None:
    tests = LEAVES + MISSES if ini else MARK + LEAVES + MARK + MISSES
    result = outcomes(pytester, tests, INI if ini else "")
    result.assert_outcomes(failed=2)  # and no error: it is the test that fails, not its teardown
    result.stdout.fnmatch_lines(["*Scripted replies that were not used (1 were):*", '*{"text":"two"}*'])
    result.stdout.fnmatch_lines(
        ["*Requests that found no scripted reply: 1 (1 found one):*", "*/v1/chat/completions: 'second'*"]
    )


def test_a_marker_has_its_way_against_the_ini_file(pytester: pytest.Pytester) -> None:
    off = "@pytest.mark.mockllm(script_must_be_used=False, output_tokens=3)"
    outcomes(pytester, off + LEAVES, INI).assert_outcomes(passed=1)


def test_a_test_that_fails_by_itself_keeps_its_own_message(pytester: pytest.Pytester) -> None:
    result = outcomes(pytester, LEAVES.replace('"one"\n', '"three"\n'), INI)
    result.assert_outcomes(failed=1)
    result.stdout.no_fnmatch_line("*Scripted replies that were not used*")


def test_a_script_that_is_used_up_passes(pytester: pytest.Pytester) -> None:
    outcomes(pytester, MARK + LEAVES.replace(', {"text": "two"}', ""), "").assert_outcomes(passed=1)
