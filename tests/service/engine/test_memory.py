"""Detectors that would take too much memory are refused before they are made, and nothing of them is stored."""

from pathlib import Path

import pytest

from tests.service.engine.helpers import START, noise, one, rig
from tocsin_monitor.errors import RefusedError
from tocsin_monitor.observations import Status

LARGE = {"forecaster": "seasonal-naive", "forecaster_options": {"search": 2**20}}


@pytest.mark.slow
def test_a_signal_larger_than_is_allowed_is_never_made(tmp_path: Path) -> None:
    features = [f"f{number}" for number in range(16)]
    with rig(tmp_path, engine={"max_signal_bytes": 2**22}) as made:
        with pytest.raises(RefusedError, match=r"needs 1\d\d\.\d MB of memory.*max_signal_bytes allows 4\.0 MB"):
            made.engine.signals.create("large", features, LARGE).result(20)
        with made.store.reading() as reader:
            assert reader.signals() == []
        made.feed("small", noise(1, 30))
        with pytest.raises(RefusedError, match="max_signal_bytes"):
            made.engine.signals.configure("small", detector=LARGE).result(20)
        assert made.engine.signals.details("small").result(20).settings["forecaster"] == "last-value"


def test_all_signals_together_take_no_more_than_is_allowed(tmp_path: Path) -> None:
    with rig(tmp_path, engine={"max_detector_bytes": 2**21}, templates=[{"match": "big/*", "detector": LARGE}]) as made:
        outcomes = made.take(one("small/1", START, 1.0), one("big/1", START, 1.0), one("small/2", START, 1.0))
        assert [outcome.status for outcome in outcomes] == [Status.SCORED, Status.REFUSED, Status.SCORED]
        assert outcomes[1].message is not None
        assert "max_detector_bytes allows 2.0 MB" in outcomes[1].message
        assert sorted(made.state.signals) == ["small/1", "small/2"]
        taken = made.state.places.bytes
        made.engine.signals.remove("small/1").result(20)
        made.engine.signals.remove("small/2").result(20)
        assert taken > 0
        assert made.state.places.bytes == 0


def test_settings_of_one_signal_alone_take_few_rows(tmp_path: Path) -> None:
    with rig(tmp_path) as made:
        for number in range(5):
            made.engine.signals.create(f"own/{number}", detector={"gap": 10 + number}).result(20)
        assert [len(block.fleet.names) for block in made.state.places.blocks] == [8] * 5
        made.take(*(one(f"alike/{number}", START, 1.0) for number in range(100)))
        sizes = [len(block.fleet.names) for block in made.state.places.blocks]
        assert sorted(sizes) == [8] * 7 + [16, 32, 64]
