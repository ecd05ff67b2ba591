"""Every kind of file in the zoo is understood, or refused with the argument that helps."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.data.zoo import ZOO, examine


@pytest.mark.parametrize("name", ZOO)
def test_every_kind_of_file(name, tmp_path):
    line, right = examine(ZOO[name], tmp_path)
    assert right, line


def test_the_zoo_tells_how_many_are_right():
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-m", "tests.data.zoo"], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == f"files={len(ZOO)} right={len(ZOO)}"
