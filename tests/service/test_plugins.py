"""Packages of others add kinds of sinks: the example in docs/extending.md, installed and used."""

import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.service.engine.helpers import until
from tests.service.process import MonitorProcess
from tocsin_monitor.sinks.testing import MARK

ROOT = Path(__file__).parents[2]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The example as it is installed: its modules, and the entry point beside it."""
    page = (ROOT / "docs" / "extending.md").read_text()
    settings, code, _ = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    offered, *_ = re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL)
    place = tmp_path / "installed"
    facts = place / "plant_log-1.0.dist-info"
    facts.mkdir(parents=True)
    (place / "plant_log_settings.py").write_text(settings)
    (place / "plant_log.py").write_text(code)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: plant-log\nVersion: 1.0\n")
    ((group, line),) = re.findall(r'entry-points\."(.*?)"\]\n(.*)\n', offered)
    (facts / "entry_points.txt").write_text(f"[{group}]\n{line.replace(chr(34), '')}\n")
    return place


def with_package(package: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])}


@pytest.mark.slow
def test_a_new_kind_of_sink_is_in_the_example_of_settings(package: Path) -> None:
    command = [sys.executable, "-m", "tocsin", "config", "example"]
    done = subprocess.run(command, env=with_package(package), capture_output=True, text=True, check=True)
    assert "[[sinks.plant_log]]" in done.stdout
    assert "A log file of the plant." in done.stdout


@pytest.mark.full
def test_a_new_kind_of_sink_is_told_of_incidents(package: Path, tmp_path: Path) -> None:
    told = tmp_path / "plant.log"
    config = f"""
        [detector]
        forecaster = "last-value"
        views = ["error"]
        [[sinks.plant_log]]
        name = "plant"
        path = "{told}"
        """
    with MonitorProcess(tmp_path, config, environment=with_package(package)) as monitor:
        monitor.start()
        with httpx.Client(base_url=f"{monitor.address}/api/v1", timeout=60) as client:
            client.put("/signals/plant/pump", json={"silent_after": 0.2}).raise_for_status()
            client.post("/observations", json={"signal": "plant/pump", "value": 1.0}).raise_for_status()
            until(told.exists)
            assert told.read_text().startswith("firing plant/pump")
            tested = client.post("/sinks/test", json={"name": "plant"}).json()["sinks"]
    assert tested == [{"name": "plant", "delivered": True, "error": None}]
    assert f"firing {MARK} nothing is wrong\nresolved {MARK} nothing is wrong\n" in told.read_text()
