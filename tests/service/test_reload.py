"""The settings file of a running monitor, read again."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from tests.service.process import MonitorProcess
from tocsin_monitor.config import Settings
from tocsin_monitor.reloading import LIVE, LIVE_IN, reloaded

BEFORE = '[detector]\nforecaster = "last-value"\nviews = ["error"]\n'
AFTER = BEFORE + '[[templates]]\nmatch = "pump/*"\nunit = "bar"\nvalid_range = [0, 10]\n[events]\nhold = "1s"\n'


def test_what_changes_and_what_waits_is_named() -> None:
    now = Settings.model_validate({"server": {"port": 8710}})
    new = Settings.model_validate(
        {"server": {"port": 8711}, "log_level": "debug", "storage": {"keep_observations": "1d", "folder": "elsewhere"}}
    )
    in_force, what = reloaded(now, new)
    assert what.changed == ("log_level", "storage.keep_observations")
    assert what.needs_restart == ("server.port", "storage.folder")
    assert (in_force.server, in_force.log_level, in_force.storage.keep_observations) == (now.server, "debug", 86400.0)
    assert reloaded(in_force, in_force)[1] == reloaded(now, now)[1]
    for name in (*LIVE, *LIVE_IN):
        assert name in Settings.model_fields


@pytest.mark.slow
def test_a_running_monitor_reads_its_file_again_and_refuses_a_wrong_one_as_a_whole(tmp_path: Path) -> None:
    with MonitorProcess(tmp_path, BEFORE) as monitor:
        monitor.start()
        with httpx.Client(base_url=f"{monitor.address}/api/v1", timeout=60) as api:

            def unit_of(name: str) -> str | None:
                api.post("/observations", json={"signal": name, "value": 20}).raise_for_status()
                found: str | None = api.get(f"/signals/{name}").json()["unit"]
                return found

            def reload() -> subprocess.CompletedProcess[str]:
                command = [sys.executable, "-m", "tocsin", "reload", "--url", monitor.address]
                return subprocess.run(command, capture_output=True, text=True, check=False)

            assert unit_of("pump/1") is None
            monitor.config.write_text(AFTER.replace("10]", "-10]"))
            said = reload()
            assert said.returncode == 1
            assert "the settings stay as they are" in said.stderr
            assert "the first less than the second" in said.stderr
            assert unit_of("pump/2") is None
            monitor.config.write_text(AFTER)
            said = reload()
            assert said.stdout.splitlines() == ["changed: templates", "not before a restart: events.hold"]
            assert (unit_of("pump/3"), unit_of("pump/1")) == ("bar", None)
            assert [one["signal"] for one in api.get("/incidents").json()["incidents"]] == ["pump/3"]
            monitor.config.write_text(BEFORE)
            os.kill(monitor.pid, signal.SIGHUP)
            end = time.monotonic() + 60
            while monitor.log.read_text().count("settings read again") < 2:
                assert time.monotonic() < end
                time.sleep(0.05)
            assert unit_of("pump/4") is None
