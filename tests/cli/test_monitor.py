"""`tocsin serve`, `config`, `token`, `backup` and `restore`, as a user calls them."""

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest

from tests.cases import full
from tests.cli.calling import invoke, run_process, words
from tests.service.engine.helpers import until
from tests.service.process import MonitorProcess
from tocsin_monitor.store import Store
from tocsin_monitor.tokens import hash_token, looks_like_token

MISSING = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {missing}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
sys.argv = ["tocsin", *{arguments}]
from tocsin.cli import app
app()
"""


@pytest.fixture
def data(tmp_path):
    return tmp_path / "data"


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch):
    monkeypatch.delenv("TOCSIN_CONFIG", raising=False)


def tokens_in(folder):
    store = Store.open(f"sqlite:///{folder / 'tocsin.db'}")
    try:
        with store.reading() as reader:
            return reader.tokens()
    finally:
        store.close()


def test_help_imports_nothing_of_the_monitor():
    code = "import sys, tocsin, tocsin.cli; print([name for name in {names} if name in sys.modules])"
    names = ["fastapi", "sqlalchemy", "pydantic", "uvicorn", "httpx", "paho", "prometheus_client", "sse_starlette"]
    done = subprocess.run([sys.executable, "-c", code.format(names=names)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        full(["serve"], ["uvicorn"]),
        (["config", "check"], ["pydantic"]),
        full(["token", "list"], ["sqlalchemy"]),
        full(["backup", "x"], ["sqlalchemy"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_a_missing_library_is_named(tmp_path, arguments, missing):
    code = MISSING.format(missing=missing, arguments=arguments)
    (tmp_path / "tocsin-data").mkdir()
    (tmp_path / "tocsin-data" / "tocsin.db").touch()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert "pip install tocsin-monitor" in done.stderr
    assert "Traceback" not in done.stderr


def test_config_check_prints_what_is_in_force_and_where_it_comes_from(tmp_path, monkeypatch):
    file = tmp_path / "tocsin.toml"
    file.write_text("[server]\nport = 9000\n[storage]\nurl = 'postgresql://u:hunter2@h/d'\n")
    monkeypatch.setenv("TOCSIN_LOG_LEVEL", "debug")
    result = invoke("config", "check", "--config", file)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert f"server.port = 9000  # {file}" in lines
    assert 'log_level = "debug"  # TOCSIN_LOG_LEVEL' in lines
    assert 'server.host = "127.0.0.1"' in lines
    assert f'storage.url = "**********"  # {file}' in lines
    assert "hunter2" not in result.output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[server]\nport = 99999", "server.port: must be less than or equal to 65535, got 99999"),
        ("[[sources.mqtt]]\nname = 'm'\ntopics = ['a#']", "a topic pattern has + and # only as whole levels"),
        ("[[sinks.alertmanager]]\nname = 'a'\nlabels = {signal = 'x'}", "a label's name must be"),
    ],
)
def test_config_check_refuses(tmp_path, text, said):
    file = tmp_path / "tocsin.toml"
    file.write_text(text)
    result = invoke("config", "check", "--config", file)
    assert result.exit_code == 2
    assert said in words(result)


def test_the_file_of_settings_may_be_named_by_the_environment(tmp_path, monkeypatch):
    file = tmp_path / "tocsin.toml"
    file.write_text("[server]\nport = 9123\n")
    monkeypatch.setenv("TOCSIN_CONFIG", str(file))
    assert f"server.port = 9123  # {file}" in invoke("config", "check").stdout


def test_the_example_passes_the_check(tmp_path):
    file = tmp_path / "example.toml"
    file.write_text(invoke("config", "example").stdout)
    result = invoke("config", "check", "--config", file)
    assert result.exit_code == 0, result.output
    given = [line for line in result.stdout.splitlines() if "#" in line]
    assert given == [f"detector = {{}}  # {file}"], "all others are defaults"


@pytest.mark.slow
def test_tokens_are_made_listed_and_revoked(data):
    made = invoke("token", "create", "gateway", "--role", "write", "--expires", "90d", "--data", data)
    assert made.exit_code == 0, made.output
    token = made.stdout.strip()
    assert looks_like_token(token)
    (row,) = tokens_in(data)
    assert (row.name, row.role, row.hash) == ("gateway", "write", hash_token(token))
    assert row.expires - row.created == 90 * 86400 * 10**9

    invoke("token", "create", "people", "--role", "admin", "--expires", "2200-01-01", "--data", data)
    limited = ("--match", "pump/*", "--match", "tank")
    assert invoke("token", "create", "pumps", "--role", "ingest", *limited, "--data", data).exit_code == 0
    assert "pump/*, tank" in invoke("token", "list", "--data", data).stdout
    assert invoke("token", "revoke", "pumps", "--data", data).exit_code == 0
    listed = invoke("token", "list", "--data", data)
    assert listed.exit_code == 0
    assert re.search(r"gateway\s+write\s+20\d\d-", listed.stdout)
    assert "2200-01-01T00:00:00Z" in listed.stdout
    assert token not in listed.stdout
    assert row.hash not in listed.stdout

    assert invoke("token", "revoke", "gateway", "--data", data).exit_code == 0
    assert [row.name for row in tokens_in(data)] == ["people"]
    with closing(Store.open(f"sqlite:///{data}/tocsin.db")) as store, store.reading() as reader:
        trail = [(deed.action, deed.target, deed.details) for deed in reader.access_log(limit=9)]
    assert trail == [
        ("token revoke", "gateway", ""),
        ("token revoke", "pumps", ""),
        ("token create", "pumps", "ingest pump/* tank"),
        ("token create", "people", "admin"),
        ("token create", "gateway", "write"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["create", "a", "--role", "king"], 2, "'king' is not one of read, ingest, operate, write, admin"),
        (["create", "a", "--role", "admin", "--match", "a*"], 2, "role admin cannot be limited"),
        (["create", "a", "--role", "read", "--match", ""], 2, "none of them empty"),
        (["create", "a b", "--role", "read"], 2, "'a b' must be 1 to 64 letters"),
        (["create", "a", "--role", "read", "--expires", "soon"], 2, "'soon' is neither a duration"),
        (["create", "a", "--role", "read", "--expires", "2001-01-01"], 2, "is in the past"),
        (["create", "there", "--role", "read"], 1, "a token named 'there' already exists"),
        (["revoke", "a"], 1, "there is no token named 'a'"),
    ],
)
def test_tokens_that_cannot_be(data, arguments, code, said):
    assert invoke("token", "create", "there", "--role", "read", "--data", data).exit_code == 0
    result = invoke("token", *arguments, "--data", data)
    assert result.exit_code == code
    assert said in words(result)
    assert [row.name for row in tokens_in(data)] == ["there"]


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["token", "list"], ["token", "revoke", "a"], ["backup", "x.db"]])
def test_looking_makes_no_store(data, arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = invoke(*arguments, "--data", data)
    assert result.exit_code == 1
    assert str(data) in words(result)
    assert not data.exists()


@pytest.mark.slow
def test_backup_and_restore(data, tmp_path):
    invoke("token", "create", "a", "--role", "admin", "--data", data)
    file, elsewhere = tmp_path / "backup.db", tmp_path / "elsewhere"
    done = invoke("backup", file, "--data", data)
    assert done.exit_code == 0, done.output
    assert invoke("restore", file, "--data", elsewhere).exit_code == 0
    assert tokens_in(elsewhere) == tokens_in(data)

    again = invoke("backup", file, "--data", data)
    assert again.exit_code == 1
    assert "already" in words(again)
    taken = invoke("restore", file, "--data", data)
    assert taken.exit_code == 1
    assert "empty store" in words(taken)
    file.write_bytes(b"nothing of the kind")
    assert invoke("restore", file, "--data", tmp_path / "third").exit_code == 1


@pytest.mark.slow
def test_nobody_else_is_listened_to_without_a_token(data):
    result = run_process("serve", "--host", "0.0.0.0", "--port", "0", "--data", data)
    assert result.returncode == 2
    command = re.search(r"tocsin (token create .*)", result.stderr)[1]
    assert invoke(*command.split()).exit_code == 0
    assert [row.role for row in tokens_in(data)] == ["admin"]


def test_a_token_that_is_over_does_not_count(data, monkeypatch):
    invoke("token", "create", "a", "--role", "admin", "--expires", "1h", "--data", data)
    later = time.time_ns() + 2 * 3600 * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: later)
    result = invoke("serve", "--host", "0.0.0.0", "--port", "0", "--data", data)
    assert result.exit_code == 2
    assert "no valid token" in words(result)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "70000"], "70000"),
        (["--config", "nothing.toml"], "nothing.toml cannot be read"),
    ],
)
def test_serve_refuses_wrong_options(data, arguments, said):
    result = invoke("serve", *arguments, "--data", data)
    assert result.exit_code == 2
    assert said in words(result)
    assert not data.exists()


class Served:
    def __init__(self, data, program=("-m", "tocsin")):
        command = [sys.executable, *program, "serve", "--port", "0", "--data", str(data)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.said = [self.process.stdout.readline().strip() for _ in range(3)]

    @property
    def address(self):
        return self.said[0].removeprefix("listening: ")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        output, errors = self.process.communicate(timeout=60)
        return self.process.returncode, output, errors


def send(address, value):
    body = json.dumps({"signal": "pump/1", "value": value}).encode()
    request = urllib.request.Request(
        f"{address}/api/v1/observations", body, {"Content-Type": "application/json"}, method="POST"
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["outcomes"][0]["status"]


@pytest.mark.slow
def test_serve_says_where_it_is_what_is_taken_and_what_it_resumed(data):
    served = Served(data)
    try:
        assert re.fullmatch(r"listening: http://127\.0\.0\.1:\d+", served.said[0])
        assert served.said[1:] == [f"data: {data}", "resumed: 0 signals"]
        assert send(served.address, 4.2) == "scored"
        backup = invoke("backup", data.parent / "while-it-runs.db", "--data", data)
        assert backup.exit_code == 0, backup.output
        another = run_process("serve", "--port", "0", "--data", data)
        assert another.returncode == 1
        assert "in use by another monitor" in another.stderr
        assert "Traceback" not in another.stderr
        port = served.address.rpartition(":")[2]
        other = run_process("serve", "--port", port, "--data", Path(f"{data}2"))
        assert other.returncode == 1
        assert f"cannot listen on 127.0.0.1 port {port}" in other.stderr
        assert "Traceback" not in other.stderr
    finally:
        code, _, errors = served.stop()
    assert code == 0, errors

    with MonitorProcess(data.parent, environment={"TOCSIN_STORAGE__FOLDER": str(data)}) as resumed:
        resumed.start()
        until(lambda: "resumed: " in resumed.log.read_text())  # it says so just after it is ready
        resumed.stop()
        assert "resumed: 1 signals" in resumed.log.read_text()


GONE = """
import importlib
from tocsin.cli import app
from tocsin_monitor.errors import StoreError
def gone(reader):
    raise StoreError("the database has gone")
importlib.import_module("tocsin_monitor.cli.serve")._that_count = gone
app()
"""


@pytest.mark.full
def test_a_store_that_goes_just_when_the_monitor_is_ready_does_not_end_it(data):
    served = Served(data, ("-c", GONE))
    try:
        assert send(served.address, 4.2) == "scored"
    finally:
        code, _, errors = served.stop()
    assert code == 0, errors
