"""Files of history that no one would send who means well."""

import gzip
import io
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from random import Random

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from tests.data.workbook import bomb, far_away
from tests.service.attacks.ground import Ground
from tests.service.attacks.registry import attack

BYTES = {"Content-Type": "application/octet-stream"}


def columns() -> bytes:
    """A small Parquet file."""
    times = np.arange("2026-01-01T00:00", "2026-01-01T02:00", dtype="datetime64[m]").astype("datetime64[ms]")
    file = io.BytesIO()
    parquet.write_table(pa.table({"time": times, "value": np.arange(120.0)}), file)
    return file.getvalue()


def upload(ground: Ground, name: str, content: bytes) -> int:
    """Hand over a file; how the monitor replied."""
    asked = f"/api/v1/imports?file={name}&signal=uploaded"
    reply = ground.ask("POST", asked, content=content, headers=BYTES)
    assert reply.status_code in (200, 422), reply.text
    return reply.status_code


@attack()
def files_that_lie_about_their_size(ground: Ground) -> None:
    assert upload(ground, "columns.parquet", columns()) == 200
    assert upload(ground, "lies.xlsx", far_away()) == 422
    assert upload(ground, "lies.xlsx.gz", gzip.compress(far_away())) == 422
    upload(ground, "bomb.xlsx", bomb(500_000))
    chance = Random(0)
    for _ in range(12):
        damaged = bytearray(columns())
        for _ in range(3):  # most of what is declared stands at the end
            damaged[-chance.randrange(9, 400)] = chance.randrange(256)
        upload(ground, "damaged.parquet", bytes(damaged))
    ground.measure()
    assert ground.memory < 600 * 2**20, ground.memory
    assert ground.sender.longest < 20, ground.sender.longest


@attack()
def many_hostile_files_at_once(ground: Ground) -> None:
    files = [far_away(), bomb(50_000), columns()[:-20], b"PK\x03\x04" + bytes(2000)] * 3
    with ThreadPoolExecutor(len(files)) as senders:
        replies = list(senders.map(lambda content: upload(ground, "many.xlsx", content), files))
    assert replies.count(422) >= 9
    ground.measure()
    assert ground.memory < 600 * 2**20, ground.memory
    assert ground.sender.longest < 30, ground.sender.longest


@attack()
def files_that_lie_on_the_command_line(ground: Ground) -> None:
    file = ground.monitor.folder / "lies.xlsx"
    file.write_bytes(far_away())
    for command in (["detect", str(file)], ["import", str(file), "--signal", "x", "--url", ground.monitor.address]):
        ended = subprocess.run([sys.executable, "-m", "tocsin", *command], capture_output=True, text=True, timeout=100)
        assert ended.returncode in (1, 2), (ended.returncode, ended.stderr)
        assert "takes more than" in ended.stderr, ended.stderr
        assert "Traceback" not in ended.stderr
