"""The OPC UA source with a real server."""

import asyncio
import math
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from asyncua import Server, ua
from asyncua.crypto.permission_rules import User, UserRole

from tests.service.helpers import Running, free_port, program, run, until
from tests.service.sources.inbox import Inbox
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.observations import Status
from tocsin_monitor.plugins.opcua import OpcUaNode
from tocsin_monitor.plugins.opcua import OpcUaSourceSettings as Settings
from tocsin_monitor.plugins.opcua.source import OpcUaSource

pytestmark = pytest.mark.slow

START = datetime(2026, 1, 1, tzinfo=UTC)
URI = "http://example.com/plant"


def nanoseconds(second: float) -> int:
    return int((START.timestamp() + second) * 10**9)


class Plant:
    """A server with a flow, and one more variable."""

    def __init__(self, port: int, users: Any = None) -> None:
        self.port = port
        self.server = Server(user_manager=users)

    async def start(self, value: Any = 0.0, *, history: bool = False, certificate: Path | None = None) -> None:
        await self.server.init()
        self.server.set_endpoint(f"opc.tcp://127.0.0.1:{self.port}/plant")
        policy = ua.SecurityPolicyType.NoSecurity
        if certificate is not None:
            policy = ua.SecurityPolicyType.Basic256Sha256_SignAndEncrypt
            await self.server.set_application_uri(certificate.read_text())
            await self.server.load_certificate(str(certificate.with_suffix(".pem")))
            await self.server.load_private_key(str(certificate.with_suffix(".key.pem")))
        self.server.set_security_policy([policy])
        space = await self.server.register_namespace(URI)
        folder = await self.server.nodes.objects.add_folder(ua.NodeId("Plant", space), ua.QualifiedName("Plant", space))
        self.flow = await folder.add_variable(
            ua.NodeId("Flow", space), ua.QualifiedName("Flow", space), ua.Variant(value, ua.VariantType.Double)
        )
        self.level = await folder.add_variable(ua.NodeId("Level", space), ua.QualifiedName("Level", space), 1)
        self.note = await folder.add_variable(ua.NodeId("Note", space), ua.QualifiedName("Note", space), "text")
        self.pair = await folder.add_variable(ua.NodeId("Pair", space), ua.QualifiedName("Pair", space), [0.0, 0.0])
        await self.server.start()
        if history:
            await self.server.historize_node_data_change(self.flow, timedelta(days=9999), 1000)

    async def write(self, second: float, value: Any, status: int = ua.StatusCodes.Good, node: Any = None) -> None:
        stamp = START + timedelta(seconds=second)
        data = ua.DataValue(
            ua.Variant(value, ua.VariantType.Double if isinstance(value, float) else None),
            ua.StatusCode(status),
            SourceTimestamp=stamp,
        )
        await self.server.write_attribute_value((node or self.flow).nodeid, data)


@asynccontextmanager
async def plant(port: int | None = None, users: Any = None, **given: Any) -> AsyncIterator[Plant]:
    made = Plant(port or free_port(), users)
    await made.start(**given)
    try:
        yield made
    finally:
        await made.server.stop()


def settings(port: int, *nodes: tuple[str, str], **given: Any) -> Settings:
    all_of = nodes or (("ns=2;s=Flow", "flow"),)
    made = tuple(OpcUaNode(node=node, signal=signal) for node, signal in all_of)
    return Settings(name="plc", url=f"opc.tcp://127.0.0.1:{port}/plant", nodes=made, interval=0.02, **given)


def at(inbox: Inbox, signal: str) -> dict[float, float]:
    """The values of a signal by second, without what the variable began with, which is of now."""
    seconds = {
        (time - nanoseconds(0)) / 1e9: one.values[0] for (name, time), one in inbox.kept.items() if name == signal
    }
    return {second: value for second, value in sorted(seconds.items()) if 0 <= second < 10_000}


def test_nodes_by_id_uri_and_path_with_their_source_times(metrics: Metrics) -> None:
    async def test() -> None:
        inbox = Inbox()
        async with plant() as server:
            nodes = (
                ("ns=2;s=Flow", "a"),
                (f"nsu={URI};s=Flow", "b"),
                ("2:Plant/2:Flow", "c"),
                ("2:Plant/2:Level", "d"),
            )
            source = OpcUaSource(settings(server.port, *nodes), inbox.context(metrics))
            async with Running(source):
                await until(lambda: inbox.signals == {"a", "b", "c", "d"})
                for second in range(5):
                    await server.write(second, 1.5 + second)
                await server.write(5, 6.5)
                await server.write(6, 6.5)  # the same value, measured anew
                await until(lambda: all(6.0 in at(inbox, name) for name in "abc"))
            for name in "abc":
                assert at(inbox, name) == {0: 1.5, 1: 2.5, 2: 3.5, 3: 4.5, 4: 5.5, 5: 6.5, 6: 6.5}
            assert source.health.last_error is None
            assert inbox.cursors == {"plc": str(max(time for _, time in inbox.kept))}

    run(test)


def test_what_is_not_good_is_missing_and_what_is_no_number_is_skipped(metrics: Metrics) -> None:
    async def test() -> None:
        inbox = Inbox()
        async with plant() as server:
            nodes = (("ns=2;s=Flow", "flow"), ("ns=2;s=Note", "note"))
            source = OpcUaSource(settings(server.port, *nodes), inbox.context(metrics))
            async with Running(source):
                await until(lambda: inbox.kept)
                await server.write(0, 1.0, ua.StatusCodes.BadSensorFailure)
                await server.write(1, 1.0, ua.StatusCodes.UncertainLastUsableValue)
                await server.write(2, math.inf)
                await server.write(3, 2.0)
                await server.write(5, 3.0)
                await until(lambda: 5.0 in at(inbox, "flow"))
            found = at(inbox, "flow")
            assert [second for second, value in found.items() if math.isnan(value)] == [0, 1, 2]
            assert (found[3.0], found[5.0]) == (2.0, 3.0)
            assert inbox.signals == {"flow"}
            assert source.health.skipped == 1
            assert "got 'text'" in (source.health.last_error or "")

    run(test)


@pytest.mark.full
def test_the_server_keeps_what_the_monitor_cannot_take_yet(metrics: Metrics) -> None:
    async def test() -> None:
        inbox = Inbox()
        async with plant() as server:
            async with Running(OpcUaSource(settings(server.port), inbox.context(metrics))):
                await until(lambda: inbox.kept)
                inbox.open.clear()
                for second in range(300):
                    await server.write(second, float(second))
                    await asyncio.sleep(0.002)
                inbox.failures = 1  # and then the store is away
                inbox.open.set()
                await until(lambda: len(at(inbox, "flow")) == 300)
            assert list(at(inbox, "flow").values()) == [float(second) for second in range(300)]

    run(test)


@pytest.mark.full
@pytest.mark.parametrize("history", [False, True])
def test_it_goes_on_after_the_server_started_again(metrics: Metrics, history: bool) -> None:
    async def test() -> None:
        inbox = Inbox()
        port = free_port()
        source = OpcUaSource(settings(port, history=history, timeout=2), inbox.context(metrics))
        async with Running(source):
            await until(lambda: source.health.last_error)  # nobody is there yet
            async with plant(port, history=history) as server:
                await until(lambda: inbox.kept)
                await server.write(10, 1.0)
                await until(lambda: 10.0 in at(inbox, "flow"))
            async with plant(port) as server:
                await until(lambda: len(inbox.kept) >= 2)
                count = len(inbox.kept)
                await until(lambda: len(inbox.kept) > count)  # its first value
                await server.write(20, 2.0)
                await until(lambda: 20.0 in at(inbox, "flow"))

    run(test)


def test_what_was_missed_is_read_from_the_history(metrics: Metrics) -> None:
    async def test() -> None:
        inbox = Inbox()
        async with plant(history=True) as server:
            given = settings(server.port, history=True)
            async with Running(OpcUaSource(given, inbox.context(metrics))):
                await until(lambda: inbox.kept)
                start = max(time for _, time in inbox.kept)
                ahead = (start - nanoseconds(0)) / 1e9 + 0.001
                await server.write(ahead, 1.0)
                await until(lambda: len(inbox.kept) == 2)
            for step in range(1, 6):  # nobody listens
                await server.write(ahead + step * 0.001, 1.0 + step)
                # The server notes its history when it comes to it.
                while 1.0 + step not in [one.Value.Value for one in await server.flow.read_raw_history()]:
                    await asyncio.sleep(0.02)
            async with Running(OpcUaSource(given, inbox.context(metrics))):
                await until(lambda: len(inbox.kept) == 7)
            assert inbox.values("flow") == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]

    run(test)


class Historian:
    """The history of a server as the standard has it: bounds where they are asked for, and no more than 3 at once."""

    def __init__(self, server: Plant) -> None:
        self.manager = server.server.iserver.history_manager
        self.manager.storage.max_history_data_response_size = 3
        self.read = self.manager.read_history
        self.manager.read_history = self.read_history
        self.between: Any = None

    async def read_history(self, parameters: Any) -> Any:
        results = await self.read(parameters)
        details = parameters.HistoryReadDetails
        if details.ReturnBounds:
            bound = ua.DataValue(None, ua.StatusCode(ua.StatusCodes.BadBoundNotFound), SourceTimestamp=details.EndTime)
            results[0].HistoryData.DataValues.append(bound)
        if self.between is not None:
            between, self.between = self.between, None
            await between()
        return results


async def remember(server: Plant, second: float, value: float) -> None:
    """Write a value, and wait until the server has it in its history, which it notes when it comes to it."""
    await server.write(second, value)
    while value not in [
        one.Value.Value for one in server.server.iserver.history_manager.storage._datachanges[server.flow.nodeid]
    ]:
        await asyncio.sleep(0.02)


@pytest.mark.full
def test_all_of_a_long_history_is_read_without_made_up_bounds(metrics: Metrics) -> None:
    async def test() -> None:
        inbox = Inbox()
        async with plant(history=True) as server:
            given = settings(server.port, history=True)
            async with Running(OpcUaSource(given, inbox.context(metrics))):
                await until(lambda: inbox.kept)
            start = (max(time for _, time in inbox.kept) - nanoseconds(0)) / 1e9
            for step in range(1, 11):
                await remember(server, start + step * 0.001, float(step))
            historian = Historian(server)

            async def between() -> None:  # while the history is read, and nothing is subscribed to yet
                await remember(server, start + 0.011, 11.0)
                await remember(server, start + 0.012, 12.0)

            historian.between = between
            async with Running(OpcUaSource(given, inbox.context(metrics))):
                await until(lambda: 12.0 in inbox.values("flow"))
            assert inbox.values("flow") == [float(step) for step in range(13)]
            assert Status.LATE not in inbox.statuses

    run(test)


@pytest.mark.full
def test_a_clock_that_is_ahead_does_not_hide_what_was_missed(metrics: Metrics) -> None:
    async def test() -> None:
        inbox = Inbox()
        async with plant(history=True) as server:
            given = settings(server.port, history=True)
            async with Running(OpcUaSource(given, inbox.context(metrics))):
                await until(lambda: inbox.kept)
                await server.write(10**9, 1.0)
                await until(lambda: len(inbox.kept) == 2)
            now = (time.time_ns() - nanoseconds(0)) / 1e9
            await remember(server, now + 0.001, 2.0)
            await remember(server, now + 0.002, 3.0)
            async with Running(OpcUaSource(given, inbox.context(metrics))):
                await until(lambda: {2.0, 3.0} <= set(inbox.values("flow")))

    run(test)


@pytest.mark.full
def test_a_clock_that_is_behind_loses_nothing_after_a_start(metrics: Metrics) -> None:
    async def test() -> None:
        inbox = Inbox()
        async with plant(history=True) as server:
            given = settings(server.port, ("ns=2;s=Flow", "flow"), ("ns=2;s=Level", "level"), history=True)
            async with Running(OpcUaSource(given, inbox.context(metrics))):
                await until(lambda: inbox.values("level") and inbox.values("flow"))
            newest = (max(time for _, time in inbox.kept) - nanoseconds(0)) / 1e9
            await remember(server, newest - 20, 7.0)
            await remember(server, newest - 10, 8.0)
            async with Running(OpcUaSource(given, inbox.context(metrics))):
                await until(lambda: {7.0, 8.0} <= set(inbox.values("flow")))

    run(test)


@pytest.mark.full
def test_a_subscription_that_the_server_lost_is_made_again(metrics: Metrics) -> None:
    async def test() -> None:
        inbox = Inbox()
        async with plant() as server:
            source = OpcUaSource(settings(server.port, timeout=1), inbox.context(metrics))
            async with Running(source):
                await until(lambda: inbox.kept)
                subscriptions = server.server.iserver.subscription_service
                await subscriptions.delete_subscriptions(list(subscriptions.subscriptions))
                await until(lambda: source.health.last_error)
                await until(lambda: subscriptions.subscriptions)
                await server.write(1, 5.0)
                await until(lambda: 1.0 in at(inbox, "flow"))

    run(test)


@pytest.mark.full
def test_nodes_that_are_not_there_do_not_hold_up_others(metrics: Metrics) -> None:
    async def test() -> None:
        inbox = Inbox()
        async with plant() as server:
            given = settings(server.port, ("ns=2;s=None", "none"), ("ns=2;s=Flow", "flow"))
            source = OpcUaSource(given, inbox.context(metrics))
            async with Running(source):
                await until(lambda: inbox.kept and source.health.last_error)
            assert "'ns=2;s=None' cannot be subscribed to: BadNodeIdUnknown" in (source.health.last_error or "")

    run(test)


@pytest.mark.full
def test_arrays_are_features(metrics: Metrics) -> None:
    async def test() -> None:
        inbox = Inbox()
        async with plant() as server:
            given = settings(server.port, ("ns=2;s=Pair", "flow"))
            async with Running(OpcUaSource(given, inbox.context(metrics))):
                await until(lambda: inbox.kept)
                await server.write(1, [1.0, 2.0], node=server.pair)
                await server.write(2, [1.0, 2.0], ua.StatusCodes.Bad, node=server.pair)
                await until(lambda: 2.0 in at(inbox, "flow"))
            wide = {time: one.values for (_, time), one in inbox.kept.items()}
            assert wide[nanoseconds(1)] == (1.0, 2.0)
            assert len(wide[nanoseconds(2)]) == 2

    run(test)


class Users:
    """Lets in one user."""

    def get_user(self, server: Any, username: Any = None, password: Any = None, certificate: Any = None) -> User | None:
        return User(role=UserRole.User) if (username, password) == ("tocsin", "secret") else None


def certificate(folder: Path, name: str) -> Path:
    """A file with the URI of an application, and beside it its certificate and key."""
    uri = folder / f"{name}.uri"
    uri.write_text(f"urn:{name}")
    made = [program("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"]
    made += ["-addext", f"subjectAltName=URI:urn:{name},DNS:localhost"]
    made += ["-addext", "keyUsage=digitalSignature,nonRepudiation,keyEncipherment,dataEncipherment"]
    made += ["-addext", "extendedKeyUsage=serverAuth,clientAuth"]
    made += ["-keyout", str(uri.with_suffix(".key.pem")), "-out", str(uri.with_suffix(".pem"))]
    subprocess.run(made, check=True, capture_output=True)
    return uri


def test_encrypted_with_a_user_and_a_password(metrics: Metrics, tmp_path: Path) -> None:
    ours, theirs = certificate(tmp_path, "ours"), certificate(tmp_path, "theirs")

    async def test() -> None:
        inbox = Inbox()
        async with plant(users=Users(), certificate=theirs) as server:
            given = {
                "username": "tocsin", "policy": "Basic256Sha256", "certificate": ours.with_suffix(".pem"),
                "key": ours.with_suffix(".key.pem"), "server_certificate": theirs.with_suffix(".pem"),
                "application_uri": "urn:ours",
            }  # fmt: skip
            wrong = OpcUaSource(settings(server.port, password="wrong", **given), inbox.context(metrics))
            async with Running(wrong):
                await until(lambda: wrong.health.last_error)
            assert not inbox.kept
            source = OpcUaSource(settings(server.port, password="secret", **given), inbox.context(metrics))
            async with Running(source):
                await until(lambda: inbox.kept)
            assert source.health.last_error is None

    run(test)


def test_settings_that_make_no_sense(metrics: Metrics, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="policy Basic256Sha256 needs certificate and key"):
        settings(1, policy="Basic256Sha256")
    with pytest.raises(ValueError, match="signals of different names, got x more than once"):
        OpcUaSource(settings(1, ("i=1", "x"), ("i=2", "x")), Inbox().context(metrics))
    with pytest.raises(ValueError, match="url"):
        Settings(name="x", url="opc.tcp://user:secret@host", nodes=(OpcUaNode(node="i=1"),))
