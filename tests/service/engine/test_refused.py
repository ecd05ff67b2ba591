"""What the store refuses for good is listed, and everything else goes on."""

from pathlib import Path

from tests.service.engine.helpers import SECOND, START, Rig, expected_all, one, oracle, same, settings_of
from tocsin_monitor.observations import Batch, Cursor, Status
from tocsin_monitor.store import Store

BAD = 666.0


def refusing(url: str) -> Store:
    """A store that takes every number but one, as its database says itself."""
    store = Store.open(url)
    with store.transaction() as writer:
        if writer.connection.dialect.name == "sqlite":
            writer.connection.exec_driver_sql(
                "CREATE TRIGGER no_bad BEFORE INSERT ON observations WHEN new.value = 666.0 "
                "BEGIN SELECT RAISE(ABORT, 'this number is not taken'); END"
            )
        else:
            writer.connection.exec_driver_sql("ALTER TABLE observations ADD CHECK (value <> 666.0)")
    return store


def test_a_row_that_is_refused_is_listed_and_its_source_goes_on(tmp_path: Path, store_url: str) -> None:
    values = [float(number % 7) for number in range(40)]
    made = Rig(tmp_path, settings_of(), refusing(store_url))
    try:
        sent = [one("a", START + number * SECOND, value) for number, value in enumerate(values)]
        sent.insert(23, one("a", START + 22 * SECOND + 5, BAD))
        other = made.engine.submit(Batch((one("b", START, 1.0),)))
        outcomes = made.engine.submit(Batch(tuple(sent), Cursor("file", "the end"), "file")).result(60)
        assert other.result(60)[0].status is Status.SCORED
        assert [outcome.status for outcome in outcomes].count(Status.SCORED) == 40
        assert outcomes[23].status is Status.REFUSED
        assert same([row.judged for row in made.stored("a")], expected_all(oracle(), values))
        with made.store.reading() as reader:
            (row,) = reader.refused(limit=10)
            assert reader.cursor("file") == "the end"
        assert (row.signal, row.time, row.value, row.source) == ("a", START + 22 * SECOND + 5, "[666.0]", "file")
        assert "rejects the data" in row.reason
        assert made.sample("tocsin_refused_observations_total") == 1
    finally:
        made.close()
