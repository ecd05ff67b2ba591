"""Signals that cannot be rebuilt at the next start."""

import sqlite3

from tests.service.attacks.ground import Ground
from tests.service.attacks.registry import attack


@attack()
def a_signal_that_cannot_be_rebuilt(ground: Ground) -> None:
    ground.send({"signal": "broken", "value": 1.0}, {"signal": "whole", "value": 1.0})
    with ground.sender.rests():
        ground.monitor.stop()
        with sqlite3.connect(ground.monitor.folder / "data" / "tocsin.db") as database:
            database.execute("""UPDATE signals SET settings = '{"forecaster": "gone"}' WHERE name = 'broken'""")
        database.close()
        ground.monitor.start()
    (quarantined,) = ground.ask("GET", "/api/v1/status").json()["quarantined"]
    assert quarantined["name"] == "broken"
    assert "gone" in quarantined["reason"]
    assert "tocsin_signals_quarantined 1.0" in ground.ask("GET", "/metrics").text
    kept, scored = ground.send({"signal": "broken", "value": 2.0}, {"signal": "whole", "value": 2.0})
    assert (kept["status"], scored["status"]) == ("quarantined", "scored")
    mended = ground.ask("PUT", "/api/v1/signals/broken", json={"detector": {"forecaster": "last-value"}})
    assert mended.status_code == 200, mended.text
    assert mended.json()["observations"] == 2
    assert ground.ask("GET", "/api/v1/status").json()["quarantined"] == []
