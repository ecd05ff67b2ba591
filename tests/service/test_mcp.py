"""`tocsin mcp`: what an agent can ask of a real monitor, with the SDK's own client."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tests.cli.calling import invoke
from tests.service.process import MonitorProcess
from tocsin_monitor.cli.client import client_of

READING = {"list_signals", "list_incidents", "explain_incident", "show_values"}
PUMP = "plant/pump 3?/flow"


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    result = invoke("mcp")
    assert result.exit_code == 1
    assert "pip install 'tocsin-monitor[mcp]'" in result.output


mcp = pytest.importorskip("mcp", reason="these tests need the extra mcp")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def monitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MonitorProcess, dict[str, str]]]:
    """A monitor with an incident, and tokens: to read all, to read some, to operate."""
    folder = tmp_path_factory.mktemp("mcp")
    made = MonitorProcess(folder, '[detector]\npreset = "light"\nalarm_rate = 0.01\n')
    tokens = {
        "read": made.make_token("read"),
        "some": made.make_token("read", "--match", "other/*", name="some"),
        "operate": made.make_token("operate"),
        "ingest": made.make_token("ingest"),
    }
    made.start()
    values = np.random.default_rng(0).normal(size=900)
    values[880:] += 15
    times = (np.datetime64("2026-01-01T00:00:00") + np.arange(900) * np.timedelta64(60, "s")).astype(str)
    sent = [{"signal": PUMP, "time": f"{t}Z", "value": v} for t, v in zip(times, values.tolist(), strict=True)]
    headers = {"Authorization": f"Bearer {tokens['ingest']}"}
    httpx.post(f"{made.address}/api/v1/observations", json=sent, headers=headers, timeout=120).raise_for_status()
    yield made, tokens
    made.kill()


def asked(monitor: tuple[MonitorProcess, dict[str, str]], token: str, *calls: Any, allow_labels: bool = False) -> Any:
    """The names of the tools, and the result of each call of one."""
    from tocsin_monitor.cli.mcp import server_of

    async def talk(client: httpx.Client) -> tuple[set[str], list[Any]]:
        async with mcp.Client(server_of(client, allow_labels=allow_labels)) as agent:
            tools = {one.name for one in (await agent.list_tools()).tools}
            return tools, [await agent.call_tool(*call) for call in calls]

    made, tokens = monitor
    with client_of(made.address, tokens[token], 60) as client:
        return asyncio.run(talk(client))


def test_an_agent_finds_and_explains_an_incident(monitor: Any) -> None:
    tools, (signals, incidents) = asked(
        monitor, "read", ("list_signals", {"search": "PUMP"}), ("list_incidents", {"open_only": True})
    )
    assert tools == READING
    (signal,) = signals.structured_content["signals"]
    (incident,) = incidents.structured_content["incidents"]
    assert (signal["name"], signal["incident"]) == (PUMP, incident["id"])
    number = {"number": incident["id"]}
    _, (explained, values, unknown, refused) = asked(
        monitor, "read", ("explain_incident", number), ("show_values", {"signal": PUMP}),
        ("explain_incident", {"number": 999}), ("label_incident", {**number, "label": "fault"}),
    )  # fmt: skip
    assert explained.structured_content["incident"]["explanation"]
    assert len(values.structured_content["times"]) <= 200
    assert max(values.structured_content["value"][0]) > 12
    assert unknown.is_error
    assert "999" in unknown.content[0].text
    assert refused.is_error


def test_tokens_and_patterns_hold_as_for_anyone(monitor: Any) -> None:
    _, (signals, values) = asked(monitor, "some", ("list_signals", {}), ("show_values", {"signal": PUMP}))
    assert signals.structured_content["signals"] == []
    assert values.is_error
    tools, (refused,) = asked(monitor, "read", ("label_incident", {"number": 1, "label": "fault"}), allow_labels=True)
    assert tools == {*READING, "label_incident"}
    assert refused.is_error
    assert "operate" in refused.content[0].text


def test_labels_where_they_are_allowed(monitor: Any) -> None:
    wanted = {"number": 1, "label": "expected", "note": "planned"}
    _, (done,) = asked(monitor, "operate", ("label_incident", wanted), allow_labels=True)
    assert not done.is_error, done.content
    assert (done.structured_content["label"], done.structured_content["note"]) == ("expected", "planned")


def test_over_standard_input_and_output(monitor: Any) -> None:
    made, tokens = monitor
    arguments = ["-m", "tocsin", "mcp", "--url", made.address]

    async def talk() -> Any:
        environment = {**made._surroundings, "TOCSIN_TOKEN": tokens["read"]}
        command = mcp.StdioServerParameters(command=sys.executable, args=arguments, env=environment, cwd=Path.cwd())
        async with mcp.Client(command) as agent:
            return await agent.call_tool("list_signals", {})

    assert [one["name"] for one in asyncio.run(talk()).structured_content["signals"]] == [PUMP]
