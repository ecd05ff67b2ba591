"""History into the real monitor, through crashes, and out again: in both databases."""

import csv
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tests.service.process import MonitorProcess
from tests.service.receiver import Receiver
from tests.service.servers import postgres, store_url_of_a_monitor
from tocsin import Detector

__all__ = ["postgres", "store_url_of_a_monitor"]

pytestmark = pytest.mark.slow

SETTINGS: dict[str, Any] = {
    "forecaster": "last-value", "views": ["error"], "promise": "observations", "alarm_rate": 0.01, "window": 250,
}  # fmt: skip
MINUTE = 60 * 10**9
DEADLINE = 300.0
#: Observations of the past in which something happens.
FAULT = slice(1500, 1506)


def until(condition: Callable[[], Any], seconds: float = DEADLINE) -> Any:
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {seconds:g} s in vain"
        time.sleep(0.02)
    return found


def values(count: int, seed: int = 0) -> list[float]:
    made = np.random.default_rng(seed).normal(20.0, 1.0, count).round(6)
    made[FAULT] += 15
    return made.tolist()


def write_csv(path: Path, start: int, given: list[float]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["time", "value"])
        for number, value in enumerate(given):
            writer.writerow([np.datetime64(start + number * MINUTE, "ns").astype("datetime64[s]"), value])
    return path


def judged_alone(moments: list[int], given: list[float]) -> list[float]:
    """What a detector by itself says of these."""
    return list(Detector(**SETTINGS).run(given, np.array(moments, dtype="datetime64[ns]")).kept_verdicts.p[:, 0])


class Tried(MonitorProcess):
    """A monitor with a sink that notes what it is told."""

    def __init__(self, folder: Path, store_url: str, hook: str = "http://127.0.0.1:9") -> None:
        url = store_url.replace("+psycopg", "")
        settings = json.dumps(SETTINGS)[1:-1].replace('": ', '" = ').replace(', "', '\n"')
        super().__init__(
            folder,
            f'[storage]\nurl = "{url}"\nkeep_observations = "10000d"\n[detector]\n{settings}\n'
            f'[[sinks.webhook]]\nname = "hook"\nurl = "{hook}"\n',
        )

    def run(self, *arguments: object, token: str | None = None) -> subprocess.CompletedProcess[str]:
        """A command of `tocsin` for this monitor."""
        environment = {**self._surroundings, **({} if token is None else {"TOCSIN_TOKEN": token})}
        command = [sys.executable, "-m", "tocsin", *map(str, arguments)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    def bring(self, *arguments: object, token: str | None = None) -> subprocess.CompletedProcess[str]:
        return self.run("import", *arguments, "--url", self.address, token=token)

    def get(self, path: str, **query: Any) -> Any:
        return httpx.get(f"{self.address}/api/v1{path}", params=query, timeout=60).raise_for_status().json()

    def send(self, name: str, moments: list[int], given: list[float]) -> list[dict[str, Any]]:
        body = [{"signal": name, "time": time, "value": value} for time, value in zip(moments, given, strict=True)]
        answer = httpx.post(f"{self.address}/api/v1/observations", json=body, timeout=60).raise_for_status()
        outcomes: list[dict[str, Any]] = answer.json()["outcomes"]
        return outcomes

    def history(self, name: str) -> dict[str, Any]:
        """All observations of a signal, as columns."""
        columns: dict[str, list[Any]] = {}
        start = "1970-01-01T00:00:00Z"
        while True:
            some = self.get(f"/signals/{name}/-/history", **{"from": start, "limit": 10_000})
            assert some.pop("thinned") is False
            for column, cells in some.items():
                columns.setdefault(column, []).extend(cells[1:] if columns.get(column) else cells)
            if len(some["times"]) < 10_000:
                return columns
            start = some["times"][-1]

    def stages(self) -> set[str]:
        return {one["stage"] for one in self.get("/imports")["imports"]}


@contextmanager
def trying(folder: Path, store_url: str) -> Iterator[tuple[Tried, Receiver]]:
    receiver = Receiver()
    try:
        with Tried(folder, store_url, f"http://{receiver.place}/") as monitor:
            monitor.start()
            yield monitor, receiver
    finally:
        receiver.close()


def start_of(count: int) -> int:
    """When so many minutes began that end a little before now."""
    return (time.time_ns() - count * MINUTE) // MINUTE * MINUTE


def test_history_of_a_new_signal_is_learned_and_told_to_nobody(tmp_path: Path, store_url: str) -> None:
    given = values(3000)
    start = start_of(len(given) + 10)
    moments = [start + number * MINUTE for number in range(len(given))]
    file = write_csv(tmp_path / "pump.csv", start, given)
    with trying(tmp_path, store_url) as (monitor, receiver):
        done = monitor.bring(file, "--signal", "plant/pump")
        assert done.returncode == 0, done.stderr
        assert "3,000 observations stored" in done.stderr
        stored = monitor.history("plant/pump")
        assert stored["status"] == ["imported"] * 3000
        # The very verdicts that a detector by itself gives.
        assert [np.nan if p is None else p for p in stored["p"]] == pytest.approx(
            judged_alone(moments, given), rel=0, abs=0, nan_ok=True
        )
        incidents = monitor.get("/incidents", signal="plant/pump", limit=1000)["incidents"]
        assert {one["ended"] for one in incidents} == {"imported"}
        assert not any(one["open"] for one in incidents)
        first = np.datetime64(moments[FAULT.start], "ns").astype("datetime64[s]")
        assert any(one["start"].startswith(str(first)) for one in incidents)
        assert f"plant/pump: learned, {len(incidents)} past incidents" in done.stdout
        status = monitor.get("/signals/plant/pump")
        assert (status["observations"], status["silent"], len(status["recent"])) == (3000, False, 60)

        again = monitor.bring(file, "--signal", "plant/pump")
        assert "3,000 of them already there" in again.stderr
        assert monitor.history("plant/pump")["p"] == stored["p"]

        # It goes on live, warm at once, and the next incident is told.
        live = [moments[-1] + (number + 1) * MINUTE for number in range(8)]
        outcomes = monitor.send("plant/pump", live, [20.0, 20.1, 60.0, 61.0, 62.0, 20.0, 20.1, 20.2])
        assert {one["status"] for one in outcomes} == {"scored"}
        assert all(one["warm"] for one in outcomes)
        until(lambda: receiver.taken)
        told = json.dumps(receiver.taken)
        assert str(np.datetime64(live[2], "ns").astype("datetime64[s]")) in told
        starts = [alert["startsAt"] for one in receiver.taken for alert in one["alerts"]]
        assert not any(start.startswith(str(first)) for start in starts)


@pytest.mark.full
def test_history_is_put_in_its_place_in_a_signal_that_is_live(tmp_path: Path, store_url: str) -> None:
    given = values(2600)
    start = start_of(len(given))
    moments = [start + number * MINUTE for number in range(len(given))]
    with trying(tmp_path, store_url) as (monitor, _):
        monitor.send("pump", moments[2000:2300], given[2000:2300])
        before = monitor.history("pump")
        file = write_csv(tmp_path / "pump.csv", start, given[:2100])
        done = monitor.bring(file)  # the file's name is the signal's
        assert done.returncode == 0, done.stderr
        assert "100 of them already there" in done.stderr
        stored = monitor.history("pump")
        assert stored["times"] == sorted(stored["times"])
        assert stored["status"] == ["imported"] * 2000 + ["scored"] * 300
        # What was said live stays said.
        assert stored["p"][2000:] == before["p"]
        expected = judged_alone(moments, given)
        assert [np.nan if p is None else p for p in stored["p"][:2000]] == pytest.approx(
            expected[:2000], rel=0, abs=0, nan_ok=True
        )
        # The detector goes on as if it had seen everything in its order.
        monitor.send("pump", moments[2300:], given[2300:])
        assert monitor.history("pump")["p"][2300:] == expected[2300:]
        monitor.kill()
        monitor.start()
        more = [moments[-1] + MINUTE * number for number in (1, 2, 3)]
        outcomes = monitor.send("pump", more, [20.0, 21.0, 19.0])
        assert [one["p"] for one in outcomes] == judged_alone([*moments, *more], [*given, 20.0, 21.0, 19.0])[-3:]


@pytest.mark.full
def test_a_monitor_that_is_killed_loses_and_doubles_nothing(tmp_path: Path, store_url: str) -> None:
    given = values(30_000)
    start = start_of(len(given) + 10)
    moments = [start + number * MINUTE for number in range(len(given))]
    file = write_csv(tmp_path / "pump.csv", start, given)
    with trying(tmp_path, store_url) as (monitor, receiver):

        def stored() -> int:
            with suppress(httpx.HTTPError):
                return len(monitor.get("/signals/pump/-/history", limit=10_000)["times"])
            return 0

        importing = threading.Thread(target=monitor.bring, args=(file,))
        importing.start()
        until(stored)
        monitor.kill()  # while the file is being stored
        importing.join(DEADLINE)
        monitor.start()
        done = monitor.bring(file, "--no-wait")
        assert done.returncode == 0, done.stderr
        until(lambda: "learning" in monitor.stages())
        monitor.kill()  # while it is being learned
        monitor.start()
        until(lambda: monitor.stages() == {"done"})
        after = monitor.history("pump")
        assert len(after["times"]) == len(given)
        assert [np.nan if p is None else p for p in after["p"]] == pytest.approx(
            judged_alone(moments, given), rel=0, abs=0, nan_ok=True
        )
        incidents = monitor.get("/incidents", signal="pump", limit=1000)["incidents"]
        assert len({one["start"] for one in incidents}) == len(incidents)
        assert receiver.taken == []


@pytest.mark.full
def test_what_is_exported_is_what_was_imported(tmp_path: Path, store_url: str) -> None:
    given = values(700)
    start = start_of(len(given) + 10)
    file = write_csv(tmp_path / "pump.csv", start, given)
    with trying(tmp_path, store_url) as (monitor, _):
        assert monitor.bring(file).returncode == 0
        monitor.send("two", [start], [1.0])
        out = {name: tmp_path / f"{name}.{kind}" for name, kind in
               (("observations", "csv"), ("verdicts", "parquet"), ("incidents", "jsonl"))}  # fmt: skip
        options = [part for name, path in out.items() for part in (f"--{name}", path)]
        done = monitor.run("export", *options, "--signal", "pump", "--config", monitor.config)
        assert done.returncode == 0, done.stderr
        with out["observations"].open() as written:
            rows = list(csv.DictReader(written))
        assert [float(row["value"]) for row in rows] == given
        assert {(row["signal"], row["status"]) for row in rows} == {("pump", "imported")}
        from pyarrow import parquet

        table = parquet.read_table(out["verdicts"])
        p = [None if one is None else one for one in table["p"].to_pylist()]
        assert p == monitor.history("pump")["p"]
        incidents = [json.loads(line) for line in out["incidents"].read_text().splitlines()]
        assert len(incidents) == len(monitor.get("/incidents", signal="pump", limit=1000)["incidents"])
        refused = monitor.run("export", "--incidents", out["incidents"], "--signal", "no", "--config", monitor.config)
        assert refused.returncode == 1
        assert "no signal matches no (--signal)" in refused.stderr


@pytest.mark.full
def test_only_who_may_write_imports_and_it_is_in_the_access_log(tmp_path: Path) -> None:
    file = write_csv(tmp_path / "pump.csv", start_of(100), values(2000)[:50])
    with trying(tmp_path, f"sqlite:///{tmp_path / 'own.db'}") as (monitor, _):
        write = monitor.make_token("write", "--match", "plant/*")
        operate = monitor.make_token("operate")
        admin = monitor.make_token("admin")
        denied = monitor.bring(file, "--signal", "plant/pump", token=operate)
        assert denied.returncode == 1
        assert "this needs a token with the role write or admin; this one has operate" in denied.stderr
        other = monitor.bring(file, "--signal", "office/pump", token=write)
        assert "this token is for plant/* only" in other.stderr
        assert monitor.bring(file, "--signal", "plant/pump", token=write).returncode == 0
        headers = {"Authorization": f"Bearer {admin}"}
        trail = httpx.get(f"{monitor.address}/api/v1/access-log", headers=headers).json()["access_log"]
        deeds = [(one["who"], one["action"], one["target"], one["details"]) for one in trail]
        assert ("write", "POST", "/imports", "pump.csv: plant/pump") in deeds


@pytest.mark.full
def test_a_file_that_cannot_be_taken_is_refused_in_words(tmp_path: Path) -> None:
    no_times = tmp_path / "plain.csv"
    no_times.write_text("value\n" + "\n".join(map(str, values(2000)[:40])))
    two = tmp_path / "two.csv"
    two.write_text("id,time,value\na,2026-01-01,1\nb,2026-01-01,2\na,2026-01-02,1\nb,2026-01-02,2\n")
    with trying(tmp_path, f"sqlite:///{tmp_path / 'own.db'}") as (monitor, _):
        refused = monitor.bring(no_times, two, "--signal", "pump")
        assert refused.returncode == 1
        assert "plain.csv: history needs times" in refused.stderr
        several = monitor.bring(two, "--id", "id", "--signal", "pump")
        assert "two.csv has 2 signals: signal must contain {name}" in several.stderr
        assert monitor.get("/signals")["signals"] == []
        assert monitor.bring(two, "--id", "id", "--signal", "pump/{name}").returncode == 0
        assert [one["name"] for one in monitor.get("/signals")["signals"]] == ["pump/a", "pump/b"]
        for name in ("..", "a/b.csv", "\u00fc" * 200):
            answer = httpx.post(
                f"{monitor.address}/api/v1/imports", params={"file": name}, content=b"time,value\n2026-01-01,1\n",
                headers={"Content-Type": "application/octet-stream"},
            )  # fmt: skip
            assert (answer.status_code, answer.json()["error"]["field"]) == (422, "file")
        gone = monitor.run("import", two, "--url", "http://127.0.0.1:9", "--start-timeout", "0")
        assert gone.returncode == 1
        assert "no monitor answers at http://127.0.0.1:9/api/v1/ (--url)" in gone.stderr
