"""What is damaged, misplaced or left behind."""

import socket
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from tests.service.attacks.ground import Ground
from tests.service.attacks.registry import attack
from tocsin.detection import arrays_from_bytes, arrays_to_bytes

SECRET = "hunter2-and-more"


@attack()
def rows_of_signals_that_are_damaged(ground: Ground) -> None:
    spoilt = {"features": "{", "settings": "[1", "silent_after": "soon", "every": "often", "created": "once"}
    ground.send(*({"signal": name, "value": 1.0} for name in (*spoilt, "whole")))
    with ground.sender.rests():
        ground.monitor.stop()
        with sqlite3.connect(ground.monitor.folder / "data" / "tocsin.db") as database:
            for column, text in spoilt.items():
                database.execute(f"UPDATE signals SET {column} = ? WHERE name = ?", (text, column))
        database.close()
        ground.monitor.start()
    listed = ground.ask("GET", "/api/v1/status").json()["quarantined"]
    assert {one["name"] for one in listed} == set(spoilt), listed
    assert all("damaged" in one["reason"] for one in listed)
    (scored,) = ground.send({"signal": "whole", "value": 2.0})
    assert scored["status"] == "scored"
    mended = ground.ask("PUT", "/api/v1/signals/settings", json={"detector": {}})
    assert mended.status_code == 200, mended.text
    found = told_by(ground, "doctor")
    assert "rows in the store are damaged" in found, found
    for name in ("features", "created", "every", "silent_after"):
        assert ground.ask("DELETE", f"/api/v1/signals/{name}").status_code == 204


def told_by(ground: Ground, *command: str, config: str | None = None) -> str:
    """What a command says about the monitor."""
    file = ground.monitor.config
    if config is not None:
        file = ground.monitor.folder / "other.toml"
        file.write_text(config)
    given = ["--data", str(ground.monitor.folder / "data")] if command == ("doctor",) else []
    done = [sys.executable, "-m", "tocsin", *command, "--config", str(file), *given]
    ended = subprocess.run(done, capture_output=True, text=True, timeout=100, check=False)
    assert "Traceback" not in ended.stderr, ended.stderr
    return " ".join((ended.stdout + ended.stderr).split())


@attack()
def a_secret_where_a_path_belongs(ground: Ground) -> None:
    mail = "[[sinks.mail]]\nname = 'm'\nhost = 'localhost'\nsender = 'a@b.c'\nrecipients = ['a@b.c']\n"
    for config in (
        f"[storage]\nurl = {{file = '{SECRET}'}}",
        f"[server]\ntls_certificate = '{SECRET}'\ntls_key = '{SECRET}'",
        f"[[sources.files]]\nname = 'f'\npath = '{SECRET}'",
        f"{mail}ca_file = '{SECRET}'",
    ):
        for command in (("config", "check"), ("doctor",)):
            found = told_by(ground, *command, config=config)
            assert SECRET not in found, (command, config, found)


@attack()
def states_with_impossible_counts(ground: Ground) -> None:
    ground.send({"signal": "counted", "value": 1.0})
    address, kind = "/api/v1/signals/counted/-/state", {"Content-Type": "application/octet-stream"}
    good = arrays_from_bytes(ground.ask("GET", address).content)
    for name in [name for name in good if name.startswith("audit/")]:
        for value in (2**62, -1, 1):
            spoilt = {**good, name: np.full_like(good[name], value)}
            reply = ground.ask("PUT", address, content=arrays_to_bytes(spoilt), headers=kind)
            assert reply.status_code in (200, 422), reply.text
            assert ground.ask("GET", "/api/v1/signals/counted/-/details").status_code == 200, (name, value)
            ground.send({"signal": "counted", "value": 1.0})
    faults = {**good, "audit/faults": np.full_like(good["audit/faults"], 2**40)}
    assert ground.ask("PUT", address, content=arrays_to_bytes(faults), headers=kind).status_code == 422


@attack()
def an_upload_that_is_cut_by_a_kill_leaves_nothing(ground: Ground) -> None:
    def folders() -> list[Path]:
        return list(Path(tempfile.gettempdir()).glob(f"tocsin-import-{number}-*"))

    number = ground.monitor.pid
    head = (
        "POST /api/v1/imports?file=x.csv&signal=x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n"
        "Content-Type: application/octet-stream\r\n\r\ntime,value\n"
    )
    with socket.create_connection(("127.0.0.1", ground.monitor.port)) as connection:
        connection.sendall(head.encode())
        ground.until(folders)
        ground.restart(kill=True)
    assert folders() == []
