"""The table of sizes in the documentation follows from its formula, and its numbers from a small store."""

import re
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from tests.service.engine.helpers import SECOND, START, Rig, one, settings_of
from tocsin.data import parse_duration
from tocsin.detection import DetectorSettings, memory_bytes

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"
UNITS = {"bytes": 1, "MB": 1e6, "GB": 1e9}
#: Values with more digits or another SQLite: the size of an observation holds within this share.
BAND = 0.25
#: What a signal takes when it is young, as a share of what it takes with a long past.
YOUNG = (0.7, 1.0)


def _rows(heading: str) -> list[list[str]]:
    """The rows of the table with this first column, without its head."""
    lines = PAGE.read_text().splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith(f"| {heading} |")) + 2
    end = next(number for number in range(first, len(lines)) if not lines[number].startswith("|"))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[first:end]]


def _amount(text: str) -> float:
    number, unit = text.replace(",", "").split()[:2]
    return float(number) * UNITS[unit.rstrip(",")]


def _parts() -> dict[str, float]:
    takes = dict(_rows("part")[:-1])
    seconds = float(re.match(r"([\d.]+) ms of one slow core", _rows("part")[-1][1])[1]) / 1e3  # type: ignore[index]
    return {**{name: _amount(text) for name, text in takes.items()}, "time": seconds}


def test_the_table_follows_from_its_formula() -> None:
    program, signal, state, observation, time = _parts().values()
    rows = _rows("signals")
    assert ["5,000", "1 min", "90 days"] in [row[:3] for row in rows]
    for many, every, kept, memory, disk, core in rows:
        count, second = int(many.replace(",", "")), np.timedelta64(1, "s")
        per_second = count / (parse_duration(every) / second)
        stored = per_second * (parse_duration(kept) / second)
        assert _amount(memory) == pytest.approx(program + count * signal, abs=0.5e6)
        assert _amount(disk) == pytest.approx(count * state + stored * observation, rel=0.005)
        assert float(core.rstrip("%")) == pytest.approx(100 * per_second * time, abs=0.05)


@pytest.mark.slow
def test_its_numbers_are_those_of_a_store(tmp_path: Path) -> None:
    made = Rig(tmp_path, settings_of(detector={"interval": 60.0}))
    values = np.random.default_rng(1).normal(20, 5, (400, 5)).round(2)
    for part in range(0, 400, 20):  # as they come: all signals in turn, not one after the other
        made.take(
            *(
                one(f"plant/{signal}", START + 60 * number * SECOND, values[number, signal])
                for number in range(part, part + 20)
                for signal in range(5)
            )
        )
    memory = made.state.signals["plant/0"].block.fleet.memory_bytes
    made.close()
    with sqlite3.connect(tmp_path / "tocsin.db") as store:
        try:
            sizes = dict(store.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name"))
        except sqlite3.OperationalError:
            pytest.skip("this SQLite cannot tell the sizes of tables")
        assert store.execute("SELECT count(*) FROM observations").fetchone() == (2000,)
    _, signal, state, observation, _ = _parts().values()
    assert signal == pytest.approx(memory_bytes(DetectorSettings()), rel=0.02)
    assert YOUNG[0] <= memory / signal <= YOUNG[1]
    assert YOUNG[0] <= sizes["states"] / 5 / state <= YOUNG[1]
    assert sizes["observations"] / 2000 == pytest.approx(observation, rel=BAND)
