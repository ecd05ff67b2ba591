"""Every kind of file in the zoo is understood, or refused with the argument that helps."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.cases import full
from tests.data.zoo import ZOO, examine
from tocsin.data import DataError, read_signals


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_every_kind_of_file(name, tmp_path):
    line, right = examine(ZOO[name], tmp_path)
    assert right, line


@pytest.mark.full
def test_the_zoo_tells_how_many_are_right():
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-m", "tests.data.zoo"], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == f"files={len(ZOO)} right={len(ZOO)}"


@pytest.mark.slow
@pytest.mark.parametrize(
    # Of workbooks, which take longest, one is enough.
    "name",
    [full(name) if name.startswith("Excel:") else name for name, one in ZOO.items() if isinstance(one.content, bytes)],
)
def test_damage_never_ends_in_another_error(name, tmp_path):
    """Bytes left out, doubled and changed: a file is read or refused, never anything else."""
    rng = np.random.default_rng(sum(name.encode()))
    path = tmp_path / f"x.{ZOO[name].suffix}"
    for _ in range(6):
        content = bytearray(ZOO[name].content)
        for place in rng.integers(0, len(content), size=rng.integers(1, 30)):
            content[place : place + rng.integers(0, 4)] = (
                rng.choice(list(b'09.,;:"\n\t -/x\x00\xff'), rng.integers(0, 4)).astype(np.uint8).tobytes()
            )
        path.write_bytes(bytes(content))
        try:
            with read_signals(path, **ZOO[name].options) as signals:
                assert all(len(signal) for signal in signals)
        except DataError:
            continue  # in words of ours
