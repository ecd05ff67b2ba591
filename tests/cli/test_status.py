"""`tocsin status` and `tocsin doctor`, as a user calls them."""

import json
import socket
import sys
import time
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.cli.calling import invoke, words
from tests.service.postgres import Postgres
from tests.service.process import MonitorProcess
from tests.service.servers import postgres as postgres
from tests.service.sinks.certificates import make_certificate
from tests.service.sinks.office import Office
from tests.service.sinks.post import PASSWORD, Post
from tests.service.test_tls import write_certificate
from tocsin_monitor import doctor
from tocsin_monitor.doctor import validity_of
from tocsin_monitor.store import Store, TemplateRow
from tocsin_monitor.store.migrations import newest_version

DAY = 86400 * 10**9


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOCSIN_CONFIG", raising=False)


def examined(folder: Path, config: str = "", *options: str) -> tuple[dict[str, dict[str, str]], int]:
    """The findings of `tocsin doctor` by the names of the checks, and its exit code."""
    file = folder / "tocsin.toml"
    file.write_text(config)
    result = invoke("doctor", "--json", "--config", file, *options)
    return {one["check"]: one for one in json.loads(result.stdout)}, result.exit_code


def with_token(folder: Path, days: float | None = None) -> None:
    now = time.time_ns()
    with closing(Store.open(f"sqlite:///{folder}/data/tocsin.db")) as store, store.transaction() as writer:
        writer.add_token("gateway", "ingest", "hash", now - 1, None if days is None else now + round(days * DAY))


class TestDoctor:
    def test_a_store_and_settings_that_are_well(self, tmp_path: Path) -> None:
        with_token(tmp_path, days=300)
        found, code = examined(tmp_path, "", "--data", str(tmp_path / "data"))
        assert code == 0
        assert {one["state"] for name, one in found.items() if name != "clock"} == {"ok"}
        assert {"settings", "libraries", "open files", "disk space", "store", "tables", "tokens"} <= found.keys()
        assert found["store"]["message"].startswith("SQLite 3.")
        assert found["tables"]["message"] == f"version {newest_version()}"

    def test_an_extra_that_is_missing_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "asyncua", None)
        monkeypatch.delitem(sys.modules, "tocsin_monitor.plugins.opcua.source", raising=False)
        found, code = examined(tmp_path, '[[sources.opcua]]\nname = "plc"\nnodes = [{node = "ns=2;s=x"}]\n')
        assert (found["libraries"]["state"], code) == ("failed", 1)
        assert (
            "sources.opcua[0]: this needs an extra: pip install 'tocsin-monitor[opcua]'"
            in found["libraries"]["message"]
        )

    def test_it_prints_a_table_and_makes_nothing(self, tmp_path: Path) -> None:
        result = invoke("doctor", "--data", tmp_path / "none")
        assert result.exit_code == 0
        assert "there is none in" in words(result)
        assert "warning" in words(result)
        assert not (tmp_path / "none").exists()

    def test_wrong_settings(self, tmp_path: Path) -> None:
        found, code = examined(tmp_path, "[server]\nport = 'no'\n")
        assert code == 1
        assert "server.port" in found["settings"]["message"]
        assert found["settings"]["advice"]

    @pytest.mark.parametrize(("days", "state"), [(10, "warning"), (-1e-6, "failed")])
    def test_tokens_that_expire(self, tmp_path: Path, days: float, state: str) -> None:
        with_token(tmp_path, days)
        found, code = examined(tmp_path, "", "--data", str(tmp_path / "data"))
        assert found["tokens"]["state"] == state
        assert "tocsin token create" in found["tokens"]["advice"]
        assert code == (1 if state == "failed" else 0)

    @pytest.mark.parametrize(
        ("days", "state", "said"),
        [(90, "ok", "expires in 90 days"), (5, "warning", "expires in 5 days"), (-3, "failed", "expired 3 days ago")],
    )
    def test_certificates_that_expire(self, tmp_path: Path, days: float, state: str, said: str) -> None:
        certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
        write_certificate(certificate, key, "monitor", days, elliptic=True)
        assert validity_of(certificate)[1] == pytest.approx(time.time() + days * 86400, abs=60)
        config = f'[server]\ntls_certificate = "{certificate}"\ntls_key = "{key}"\n'
        found, _ = examined(tmp_path, config, "--data", str(tmp_path / "data"))
        assert found["certificate"]["state"] == state
        assert said in found["certificate"]["message"]

    @pytest.mark.slow
    def test_a_certificate_that_is_not_valid_yet(self, tmp_path: Path) -> None:
        certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
        write_certificate(certificate, key, "monitor", days=90, before=-2)
        config = f'[server]\ntls_certificate = "{certificate}"\ntls_key = "{key}"\n'
        found, code = examined(tmp_path, config, "--data", str(tmp_path / "data"))
        assert (found["certificate"]["state"], code) == ("failed", 1)
        assert "is not valid yet, but in 2.0 days" in found["certificate"]["message"]

    def test_a_token_that_has_expired_beside_one_that_is_valid(self, tmp_path: Path) -> None:
        with_token(tmp_path, days=-1e-6)
        with closing(Store.open(f"sqlite:///{tmp_path}/data/tocsin.db")) as store, store.transaction() as writer:
            writer.add_token("page", "admin", "another hash", time.time_ns())
        found, code = examined(tmp_path, "", "--data", str(tmp_path / "data"))
        assert (found["tokens"]["state"], code) == ("warning", 0)
        assert found["tokens"]["message"] == "these have expired: gateway"

    def test_messages_that_a_sink_does_not_accept(self, tmp_path: Path) -> None:
        """As with a token that the sink no longer accepts: it can be reached all the same."""
        with closing(Office(tmp_path / "data", "chat", "removed", "patient")) as office:
            office.begin("a"), office.begin("b")
            with office.store.transaction() as writer:
                for sink in ("chat", "removed"):
                    for row in office.due(sink):
                        writer.mark_failed(row.id, f"401 for {row.incident}", next_attempt=1)
        with socket.create_server(("127.0.0.1", 0)) as there:
            url = f"http://127.0.0.1:{there.getsockname()[1]}"
            config = "".join(f'[[sinks.webhook]]\nname = "{name}"\nurl = "{url}"\n' for name in ("chat", "patient"))
            found, code = examined(tmp_path, config, "--data", str(tmp_path / "data"))
        assert found["sinks.webhook[0] chat"]["state"] == "ok"
        assert (found["messages to chat"]["state"], code) == ("failed", 1)
        assert found["messages to chat"]["message"].startswith("2 messages have not been accepted since ")
        assert found["messages to chat"]["message"].endswith(": 401 for 2")
        assert [name for name in found if name.startswith("messages")] == ["messages to chat"]

    def test_the_disk_of_a_store_that_is_given_by_its_address(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with_token(tmp_path)
        monkeypatch.setattr(doctor, "TOO_FEW", 2**60)
        found, code = examined(tmp_path, f'[storage]\nurl = "sqlite:///{tmp_path}/data/tocsin.db"\n')
        assert (found["disk space"]["state"], code) == ("failed", 1)
        assert str(tmp_path / "data") in found["disk space"]["message"]
        assert "clock of the database" not in found
        found, _ = examined(tmp_path, f'[storage]\nurl = "sqlite:///{tmp_path}/none/tocsin.db"\n')
        assert found["store"]["state"] == "warning"

    def test_a_certificate_that_cannot_be_used(self, tmp_path: Path) -> None:
        (tmp_path / "tls.crt").write_text("nothing")
        config = f'[server]\ntls_certificate = "{tmp_path}/tls.crt"\ntls_key = "{tmp_path}/tls.key"\n'
        found, code = examined(tmp_path, config, "--data", str(tmp_path / "data"))
        assert found["certificate"]["state"] == "failed"
        assert code == 1

    def test_sources_and_sinks_are_reached_and_nothing_is_sent_to_them(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as there, socket.create_server(("127.0.0.1", 0)) as gone:
            port, closed = there.getsockname()[1], gone.getsockname()[1]
            gone.close()
            config = (
                f'[[sources.mqtt]]\nname = "plant"\ntopics = ["a"]\nport = {closed}\n'
                f'[[sources.files]]\nname = "files"\npath = "{tmp_path}/none"\n'
                f'[[sinks.mattermost]]\nname = "talk"\nurl = "http://127.0.0.1:{port}/hooks/secret-of-the-talk"\n'
                f'[[sinks.webhook]]\nname = "chat"\nurl = "http://127.0.0.1:{port}/hooks/secret-of-the-chat"\n'
            )
            found, code = examined(tmp_path, config, "--data", str(tmp_path / "data"))
            for _ in range(2):
                accepted, _ = there.accept()
                with accepted:
                    assert accepted.recv(100) == b""
        assert code == 1
        assert found["sinks.webhook[0] chat"]["state"] == "ok"
        assert found["sinks.mattermost[0] talk"]["state"] == "ok"
        assert found["sources.mqtt[0] plant"]["state"] == "failed"
        assert found["sources.files[0] files"]["state"] == "warning"
        assert "secret-of" not in json.dumps(found)

    @pytest.mark.slow
    @pytest.mark.parametrize("at_once", [False, True])
    def test_the_mail_server_is_signed_in_to_and_gets_no_mail(self, tmp_path: Path, at_once: bool) -> None:
        made = make_certificate(tmp_path)
        post = Post(made, at_once=at_once)
        security = "tls" if at_once else "starttls"
        config = (
            f'[[sinks.mail]]\nname = "mail"\nhost = "127.0.0.1"\nport = {post.port}\nsender = "a@example.com"\n'
            f'recipients = ["b@example.com"]\nsecurity = "{security}"\nusername = "tocsin"\n'
        )
        trusted = f'ca_file = "{made[0]}"\n'
        data = ("--data", str(tmp_path / "data"))
        try:
            found, _ = examined(tmp_path, f'{config}{trusted}password = "{PASSWORD}"\n', *data)
            said = f"127.0.0.1:{post.port} can be used with {security.upper()}, signed in"
            assert (found["sinks.mail[0] mail"]["state"], found["sinks.mail[0] mail"]["message"]) == ("ok", said)
            found, code = examined(tmp_path, f'{config}{trusted}password = "the wrong one"\n', *data)
            assert (found["sinks.mail[0] mail"]["state"], code) == ("failed", 1)
            assert "SMTPAuthenticationError" in found["sinks.mail[0] mail"]["message"]
            found, _ = examined(tmp_path, f'{config}password = "{PASSWORD}"\n', *data)
            assert "CERTIFICATE_VERIFY_FAILED" in found["sinks.mail[0] mail"]["message"]
            assert PASSWORD not in json.dumps(found)
        finally:
            post.close()
        assert post.mails == []

    def test_stored_templates_that_cannot_be_used(self, tmp_path: Path) -> None:
        with_token(tmp_path)
        with closing(Store.open(f"sqlite:///{tmp_path}/data/tocsin.db")) as store, store.transaction() as writer:
            writer.put_template(TemplateRow("pump/*", {"detector": {"alarm_rate": 0.01}}, 0, "ada"))
        found, _ = examined(tmp_path, "", "--data", str(tmp_path / "data"))
        assert (found["stored templates"]["state"], found["stored templates"]["message"]) == ("ok", "1 in force")
        with closing(Store.open(f"sqlite:///{tmp_path}/data/tocsin.db")) as store, store.transaction() as writer:
            writer.put_template(TemplateRow("fan/*", {"detector": {"forecaster": "unheard of"}}, 0, "ada"))
        found, code = examined(tmp_path, "", "--data", str(tmp_path / "data"))
        assert (found["stored templates"]["state"], code) == ("failed", 1)
        assert "'fan/*' is not used: " in found["stored templates"]["message"]

    @pytest.mark.slow
    def test_a_store_in_postgresql(self, tmp_path: Path, postgres: Postgres) -> None:
        url = postgres.new_database()
        with closing(Store.open(url)) as store, store.own():
            found, code = examined(tmp_path, f'[storage]\nurl = "{url}"\n')
        assert code == 0
        assert found["store"]["message"].startswith("PostgreSQL ")
        assert "UTF8, in use by process " in found["store"]["message"]
        assert found["clock of the database"]["state"] == "ok"

    def test_a_database_that_cannot_be_reached(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        found, code = examined(tmp_path, f'[storage]\nurl = "postgresql://me:hunter22@127.0.0.1:{port}/none"\n')
        assert (found["store"]["state"], code) == ("failed", 1)
        assert "hunter22" not in json.dumps(found)

    def test_tables_of_a_newer_version(self, tmp_path: Path) -> None:
        with_token(tmp_path)
        with closing(Store.open(f"sqlite:///{tmp_path}/data/tocsin.db")) as store, store.transaction() as writer:
            writer.connection.exec_driver_sql("UPDATE schema_version SET version = version + 1")
        found, code = examined(tmp_path, "", "--data", str(tmp_path / "data"))
        assert (found["tables"]["state"], code) == ("failed", 1)


class TestStatus:
    @pytest.mark.slow
    def test_a_monitor_that_runs(self, tmp_path: Path) -> None:
        with MonitorProcess(tmp_path, '[detector]\nforecaster = "last-value"\n') as monitor:
            monitor.start()
            sent = {"signal": "pump/1", "time": time.time() - 60, "value": 1.0}
            httpx.post(f"{monitor.address}/api/v1/observations", json=[sent], timeout=60).raise_for_status()
            token = monitor.make_token("read")
            time_to_learn_of_it = time.monotonic() + 60
            result = invoke("status", "--url", monitor.address, "--token", token)
            while result.exit_code and time.monotonic() < time_to_learn_of_it:
                result = invoke("status", "--url", monitor.address, "--token", token)
            assert result.exit_code == 0
            lines = dict(line.split(": ", 1) for line in result.stdout.splitlines())
            assert lines["signals"] == "1, 0 silent"
            assert lines["observations"].startswith("1 since the start")
            assert lines["open incidents"] == "0"
            assert lines["monitor"].endswith(", ready")
            found = json.loads(invoke("status", "--url", monitor.address, "--token", token, "--json").stdout)
            assert (found["signals"], found["observations"], found["ready"]) == (1, 1, True)
            wrong = ("status", "--url", monitor.address, "--token", "tocsin_" + 43 * "x")
            while (refused := invoke(*wrong)).exit_code == 0 and time.monotonic() < time_to_learn_of_it:
                pass  # it does not know yet that there is a token
            assert refused.exit_code == 1
            assert "this token is not valid" in refused.stderr

    def test_no_monitor(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        result = invoke("status", "--url", f"http://127.0.0.1:{port}")
        assert result.exit_code == 1
        assert "no monitor answers at" in result.stderr
