"""The server in virtual time, and through it the records' endpoints."""

from __future__ import annotations

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from mockllm import Config, VirtualServer

CHAT = "/v1/chat/completions"
BODY = {"model": "m", "messages": [{"role": "user", "content": "Hello"}], "stream": True}


def server(**settings: object) -> VirtualServer:
    given: dict[str, object] = {"ttft_ms": 150, "itl_ms": 10, "output_tokens": 4}
    return VirtualServer(msgspec.convert(given | settings, Config))


def test_every_chunk_comes_at_its_time() -> None:
    virtual = server()
    reply = virtual.post(CHAT, BODY)
    assert (reply.status, reply.head_s) == (200, 0.0)
    assert virtual.run() == pytest.approx(0.18)
    assert reply.complete
    assert [at_s for at_s, _ in reply.events] == [0.15, 0.15, 0.16, 0.17, 0.18, 0.18, 0.18]
    assert reply.events[-1][1] == "[DONE]"


def test_two_runs_are_alike_to_the_byte_and_to_the_record() -> None:
    replies, ledgers = [], []
    for _ in range(2):
        virtual = server(ttft_ms_std=50, itl_ms_std=5)
        for number in range(10):
            virtual.at(number * 0.01, lambda virtual=virtual: replies.append(virtual.post(CHAT, BODY)))  # type: ignore[misc] # a lambda with a bound default
        virtual.run()
        ledgers.append(list(virtual.ledger))
    assert [reply.chunks for reply in replies[:10]] == [reply.chunks for reply in replies[10:]]
    assert ledgers[0] == ledgers[1]
    assert len({record.last_token_s for record in ledgers[0]}) == 10


def test_an_hour_of_streams() -> None:
    virtual = server(ttft_ms=1000, itl_ms=1000, output_tokens=60)
    for number in range(60):
        virtual.at(60.0 * number, lambda: virtual.post(CHAT, BODY))
    assert virtual.run() == pytest.approx(3600.0)
    statistics = virtual.statistics()
    assert (statistics.requests, statistics.tokens) == (60, 3600)
    assert statistics.stimulus.interarrival_mean_s == pytest.approx(60.0)
    assert statistics.lateness.max_s < 1e-9


def test_a_client_that_hangs_up_and_one_that_stalls() -> None:
    virtual = server(output_tokens=10)
    gone, slow = virtual.connect(), virtual.connect()
    gone.request("POST", CHAT, BODY)
    reply = slow.request("POST", CHAT, BODY)
    virtual.at(0.175, gone.hang_up)
    virtual.at(0.175, slow.stall)
    virtual.at(1.0, slow.resume)
    virtual.run()
    records = {record.seq: record for record in virtual.ledger}
    assert (records[1].outcome, records[1].tokens) == ("client_gone", 3)
    assert (records[2].outcome, records[2].tokens, records[2].peer_waits) == ("completed", 10, 1)
    assert records[2].peer_wait_s == pytest.approx(0.82)
    assert records[2].peer_delayed == 6
    assert records[2].lateness_max_s < 1e-9
    assert reply.complete


def test_a_stalled_client_is_dropped_in_the_end() -> None:
    virtual = server(write_timeout_s=5)
    client = virtual.connect()
    reply = client.request("POST", CHAT, BODY)
    client.stall()
    virtual.run()
    assert virtual.ledger[0].outcome == "timed_out"
    assert (reply.complete, reply.closed) == (False, True)


def test_it_gives_up_where_nothing_ends() -> None:
    virtual = server(write_timeout_s=0)
    client = virtual.connect()
    client.request("POST", CHAT, BODY)
    client.stall()
    with pytest.raises(TimeoutError):
        virtual.run(100.0)


def test_advancing_stops_in_mid_stream() -> None:
    virtual = server()
    reply = virtual.post(CHAT, BODY)
    virtual.advance(0.165)
    assert len(reply.events) == 3  # role, two tokens
    assert virtual.statistics().in_flight == 1


def test_a_connection_is_kept_for_the_next_request() -> None:
    virtual = server()
    client = virtual.connect()
    for _ in range(2):
        reply = client.request("POST", CHAT, BODY)
        virtual.run()
        assert reply.complete
    assert virtual.statistics().requests == 2


# ---- the records over HTTP -------------------------------------------------------------------


def served(**settings: object) -> VirtualServer:
    virtual = server(**settings)
    for number in range(3):
        virtual.post(CHAT, BODY, {"X-Request-Id": f"mine-{number}"})
        virtual.run()
    return virtual


def test_planned_values_stand_in_the_head() -> None:
    virtual = served()
    reply = virtual.post(CHAT, BODY)
    assert reply.headers["x-mockllm-ttft-ms"] == "150.000"
    assert reply.headers["x-mockllm-itl-ms"] == "10.000"
    assert reply.headers["x-mockllm-output-tokens"] == "4"
    assert reply.headers["x-mockllm-seq"] == "4"
    assert "x-mockllm-overloaded" not in reply.headers
    virtual._app.truth.overloaded = True
    assert virtual.post(CHAT, BODY).headers["x-mockllm-overloaded"] == "1"
    assert not any(name.startswith("x-mockllm") for name in served(truth_headers=False).post(CHAT, BODY).headers)


def test_records_are_read_by_number_and_by_id() -> None:
    virtual = served()
    reply = virtual.get("/mockllm/requests?after=1&limit=1")
    assert reply.headers["content-type"] == "application/x-ndjson"
    (line,) = reply.body.splitlines()
    assert msgspec.json.decode(line)["seq"] == 2
    assert virtual.get("/mockllm/requests/mine-2").json()["seq"] == 3
    assert virtual.get("/mockllm/requests/1").json()["request_id"] == "mine-0"
    assert virtual.get("/mockllm/requests/nobody").status == 404
    assert virtual.get("/mockllm/requests?after=3").body == b""


def test_a_long_list_of_records_is_whole() -> None:
    virtual = server(itl_ms=0, ttft_ms=0)
    for _ in range(100):
        virtual.post(CHAT, BODY)
    virtual.run()
    lines = virtual.get("/mockllm/requests").body.splitlines()
    assert [msgspec.json.decode(line)["seq"] for line in lines] == list(range(1, 101))


@pytest.mark.parametrize("query", ["after=x", "limit=-1", "after=", "limit=" + "9" * 30])
def test_bad_numbers_are_refused(query: str) -> None:
    reply = served().get(f"/mockllm/requests?{query}")
    assert reply.status == 400
    assert reply.json()["error"]["param"] == query.partition("=")[0]


def test_looking_is_no_load() -> None:
    virtual = served()
    for path in ("/mockllm/stats", "/mockllm/requests", "/metrics", "/mockllm/requests/none"):
        virtual.get(path)
    assert virtual.post(CHAT, BODY).headers["x-mockllm-seq"] == "4"
    virtual.run()
    assert virtual.statistics().requests == 4
    assert virtual.statistics().stimulus.arrivals == 4


def test_stats_and_reset() -> None:
    virtual = served()
    stats = virtual.get("/mockllm/stats").json()
    assert (stats["requests"], stats["outcomes"], stats["trustworthy"]) == (3, {"completed": 3}, True)
    assert virtual.connect().request("POST", "/mockllm/reset").json()["requests"] == 3
    assert virtual.get("/mockllm/stats").json()["requests"] == 0
    assert virtual.get("/mockllm/reset").status == 405


def test_metrics_are_served_in_prometheus_form() -> None:
    reply = served().get("/metrics")
    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    names = {family.name for family in text_string_to_metric_families(reply.body.decode())}
    assert {"vllm:num_requests_running", "vllm:request_success", "mockllm_lateness_seconds"} <= names


def test_admin_can_be_switched_off_but_metrics_stay() -> None:
    virtual = served(admin=False)
    assert virtual.get("/mockllm/stats").status == 404
    assert virtual.get("/metrics").status == 200


def test_load_includes_what_was_refused() -> None:
    virtual = server()
    assert virtual.post(CHAT, {"model": "m"}).status == 400
    virtual.get("/health")
    statistics = virtual.statistics()
    assert (statistics.requests, statistics.stimulus.arrivals) == (2, 1)
    assert statistics.outcomes == {"completed": 1, "refused": 1}
