"""From one version of the tables to the next."""

import threading
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, inspect

from tests.service.store.helpers import add_signal, incident, tell
from tocsin.detection import DetectorSettings
from tocsin.service.errors import UnknownError
from tocsin.service.store import PartRow, ReferenceRow, Store, StoreError, TemplateRow, migrations
from tocsin.service.store.connections import connect
from tocsin.service.store.migrations import migrate, newest_version, version_of


def add_colour(connection: Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE signals ADD COLUMN colour TEXT")
    connection.exec_driver_sql("UPDATE signals SET colour = 'red'")


def fail_halfway(connection: Connection) -> None:
    connection.exec_driver_sql("CREATE TABLE half (x INTEGER)")
    connection.exec_driver_sql("DROP TABLE cursors")
    connection.exec_driver_sql("SELECT * FROM there_is_no_such_table")


@pytest.fixture
def engine(store_url: str) -> Engine:
    engine = connect(store_url)
    yield engine
    engine.dispose()


def version(engine: Engine) -> int:
    with engine.connect() as connection:
        return version_of(connection)


def tables(engine: Engine) -> dict[str, set[str]]:
    with engine.connect() as connection:
        found = inspect(connection)
        return {name: {column["name"] for column in found.get_columns(name)} for name in found.get_table_names()}


def test_an_empty_store_gets_all_tables(engine: Engine) -> None:
    assert version(engine) == 0
    migrate(engine)
    assert version(engine) == newest_version() == 12
    assert tables(engine) == {name: set(table.c.keys()) for name, table in migrations.schema.metadata.tables.items()}


def test_a_current_store_stays_as_it_is(store_url: str) -> None:
    for expected in ([], ["a"]):
        store = Store.open(store_url)
        with store.transaction() as writer:
            assert [row.name for row in writer.signals()] == expected
            if not expected:
                add_signal(writer, "a")
        store.close()


def test_an_older_store_is_brought_up_step_by_step(store_url: str, engine: Engine) -> None:
    store = Store.open(store_url)
    with store.transaction() as writer:
        add_signal(writer, "a")
    store.close()
    steps = (*migrations.STEPS, add_colour)
    migrate(engine, steps=steps)
    assert version(engine) == len(steps) + 1
    seen: list[int] = []
    migrate(engine, steps=(*steps, lambda connection: seen.append(version_of(connection))))
    assert (version(engine), seen) == (len(steps) + 2, [len(steps) + 1])
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT name, colour FROM signals").all() == [("a", "red")]


def test_a_step_that_fails_leaves_the_tables_as_they_were(
    store_url: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(engine)
    before = tables(engine)
    current = version(engine)
    monkeypatch.setattr(migrations, "STEPS", (*migrations.STEPS, add_colour, fail_halfway))
    with pytest.raises(StoreError, match="there_is_no_such_table"):
        Store.open(store_url)
    assert version(engine) == current
    assert tables(engine) == before


def test_a_newer_store_is_refused(store_url: str, engine: Engine) -> None:
    migrate(engine, steps=(*migrations.STEPS, add_colour))
    with pytest.raises(StoreError, match="tables of version 13, and this release supports versions up to 12"):
        Store.open(store_url)
    assert version(engine) == 13


def as_version_11(engine: Engine) -> None:
    """Make the tables those of version 11, which are the same."""
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE schema_version SET version = 11")


def as_version_10(engine: Engine) -> None:
    """Make the tables those of version 10."""
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE templates")
        connection.exec_driver_sql("UPDATE schema_version SET version = 10")


def as_version_9(engine: Engine) -> None:
    """Make the tables those of version 9."""
    as_version_10(engine)
    with engine.begin() as connection:
        for index in ("incidents_of_event", "outbox_of_event"):
            connection.exec_driver_sql(f"DROP INDEX {index}")
        for table, column in (("incidents", "event"), *(("outbox", name) for name in ("event", "told", "news"))):
            connection.exec_driver_sql(f"ALTER TABLE {table} DROP COLUMN {column}")
        connection.exec_driver_sql("ALTER TABLE signals DROP COLUMN source")
        connection.exec_driver_sql("DROP TABLE events")
        connection.exec_driver_sql("UPDATE schema_version SET version = 9")


def as_version_7(engine: Engine) -> None:
    """Make the tables those of version 7."""
    as_version_9(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE foretold")
        connection.exec_driver_sql("DROP TABLE parts")
        connection.exec_driver_sql("ALTER TABLE signals DROP COLUMN every")
        connection.exec_driver_sql("ALTER TABLE signals DROP COLUMN aggregate")
        connection.exec_driver_sql("UPDATE schema_version SET version = 7")


def as_version_6(engine: Engine) -> None:
    """Make the tables those of version 6."""
    as_version_7(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE incidents DROP COLUMN withheld")
        connection.exec_driver_sql("UPDATE schema_version SET version = 6")


def as_version_5(engine: Engine) -> None:
    """Make the tables those of version 5."""
    as_version_6(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE tokens DROP COLUMN patterns")
        connection.exec_driver_sql("DROP TABLE guarded")
        connection.exec_driver_sql("DROP TABLE audit")
        connection.exec_driver_sql("UPDATE schema_version SET version = 5")


def as_version_4(engine: Engine) -> None:
    """Make the tables those of version 4."""
    as_version_5(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE refused")
        connection.exec_driver_sql("UPDATE schema_version SET version = 4")


def as_version_3(engine: Engine) -> None:
    """Make the tables those of version 3."""
    as_version_4(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE incidents DROP COLUMN ended")
        connection.exec_driver_sql("UPDATE schema_version SET version = 3")


def as_version_2(engine: Engine) -> None:
    """Make the tables those of version 2."""
    as_version_3(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE reference")
        connection.exec_driver_sql("UPDATE schema_version SET version = 2")


def as_version_1(engine: Engine) -> None:
    """Make the tables those of version 1."""
    as_version_2(engine)
    double = "DOUBLE PRECISION" if engine.dialect.name == "postgresql" else "BLOB"
    with engine.begin() as connection:
        for name in ("severity", "return_period", "view", "explanation"):
            connection.exec_driver_sql(f"ALTER TABLE incidents DROP COLUMN {name}")
        connection.exec_driver_sql(f"ALTER TABLE incidents ADD COLUMN merged {double}")
        connection.exec_driver_sql("UPDATE incidents SET merged = 0.5")
        connection.exec_driver_sql("UPDATE schema_version SET version = 1")


def test_incidents_of_version_1_keep_their_severity_and_signals_settings_that_are_still_there(
    store_url: str, engine: Engine
) -> None:
    given = {
        "a": {"alarm_rate": "1/week", "interval": "1min", "horizons": 5, "light": True, "hold_below": None, "gap": 2},
        "b": {"nonconformity": "signed", "merge": "cauchy", "merge_features": "fisher", "recalibrate": False},
        "c": {"nonconformity": "high", "merge_features": "harmonic", "learn": "hold", "forecaster": "last-value"},
        "d": {},
    }
    store = Store.open(store_url)
    with store.transaction() as writer:
        for name, settings in given.items():
            writer.add_signal(name, ["value"], settings, created=7)
        writer.put_incident(incident(1, 100, p=0.001))
        writer.put_incident(incident(1, 200, kind="silence", p=float("nan")))
    store.close()
    as_version_1(engine)
    Store.open(store_url).close()
    assert version(engine) == newest_version()
    assert tables(engine) == {name: set(table.c.keys()) for name, table in migrations.schema.metadata.tables.items()}
    store = Store.open(store_url)
    with store.reading() as reader:
        found = {row.name: row.settings for row in reader.signals()}
        alarm, silence = reader.incidents(limit=9)[::-1]
    store.close()
    assert (alarm.p, alarm.severity) == (0.001, pytest.approx(3.0))
    assert alarm.return_period != alarm.return_period
    assert (alarm.view, alarm.explanation) == (None, None)
    assert silence.severity != silence.severity
    assert found == {
        "a": {"alarm_rate": "1/week", "interval": "1min", "gap": 2, "preset": "light"},
        "b": {},
        "c": {"nonconformity": "high", "forecaster": "last-value"},
        "d": {},
    }
    for settings in found.values():
        DetectorSettings(**settings)


def test_signals_of_version_2_can_get_a_reference(store_url: str, engine: Engine) -> None:
    store = Store.open(store_url)
    with store.transaction() as writer:
        signal = add_signal(writer, "a")
    store.close()
    as_version_2(engine)
    store = Store.open(store_url)
    assert version(engine) == newest_version()
    with store.transaction() as writer:
        assert writer.references() == []
        writer.put_reference(ReferenceRow(signal.id, 1, 2, 1, 3, "ada"), [1], [(4.0,)])
    with store.transaction() as writer:
        assert writer.reference_values(signal.id) == ([1], [(4.0,)])
        writer.remove_signal(signal.id)
        assert writer.references() == []
    store.close()


def test_incidents_of_version_3_do_not_know_why_they_ended(store_url: str, engine: Engine) -> None:
    store = Store.open(store_url)
    with store.transaction() as writer:
        add_signal(writer, "a")
        writer.put_incident(incident(1, 100, open=False, closed=120))
        writer.put_incident(incident(1, 200))
    store.close()
    as_version_3(engine)
    store = Store.open(store_url)
    assert version(engine) == newest_version()
    with store.transaction() as writer:
        writer.put_incident(incident(1, 200, open=False, closed=230, ended="accepted"))
        writer.put_incident(incident(1, 300, open=False, closed=310, ended="returned"))
        assert [row.ended for row in writer.incidents(limit=9)] == ["returned", "accepted", None]
    store.close()


@pytest.mark.parametrize("tokens", [0, 2])
def test_stores_of_version_5_remember_whether_there_are_tokens(store_url: str, engine: Engine, tokens: int) -> None:
    store = Store.open(store_url)
    with store.transaction() as writer:
        for number in range(tokens):
            writer.add_token(f"token-{number}", "write", f"hash-{number}", created=7 + number)
    store.close()
    as_version_5(engine)
    store = Store.open(store_url)
    assert version(engine) == newest_version()
    with store.transaction() as writer:
        assert writer.guarded_since() == (7 if tokens else None)
        assert [row.patterns for row in writer.tokens()] == [()] * tokens
        assert writer.audit(limit=1) == []
    store.close()


def test_forecasts_of_signals_of_version_7_can_be_kept(store_url: str, engine: Engine) -> None:
    store = Store.open(store_url)
    with store.transaction() as writer:
        signal, other = (add_signal(writer, name).id for name in "ab")
    store.close()
    as_version_7(engine)
    store = Store.open(store_url)
    assert version(engine) == newest_version()
    with store.transaction() as writer:
        for time in (20, 10):
            writer.add_foretold([(signal, time, f"up to {time}".encode()), (other, time, b"of another signal")])
        assert writer.foretold([signal]) == {signal: [b"up to 10", b"up to 20"]}
        writer.put_state(signal, 20, 25, b"state")
        assert writer.foretold([signal, other]) == {signal: [], other: [b"of another signal"] * 2}
        writer.remove_signal(other)
        assert writer.foretold([other]) == {other: []}
    store.close()


def test_signals_of_version_7_are_judged_by_every_observation(store_url: str, engine: Engine) -> None:
    store = Store.open(store_url)
    with store.transaction() as writer:
        add_signal(writer, "a")
    store.close()
    as_version_7(engine)
    store = Store.open(store_url)
    assert version(engine) == newest_version()
    with store.transaction() as writer:
        assert [(row.every, row.aggregate) for row in writer.signals()] == [(None, "mean")]
        new = writer.add_signal("b", ["value"], {}, created=1, every=60.0, aggregate="max")
        writer.add_parts([PartRow(new.id, 5, (1.5,)), PartRow(new.id, 6, (float("nan"),))])
        assert [row.time for row in writer.parts(new.id, 5)] == [6]
        assert writer.parts_at([(new.id, 5), (new.id, 7)]) == {(new.id, 5)}
        assert writer.signal("b") == new
        writer.remove_signal(new.id)
        assert writer.parts(new.id, None) == []
    store.close()


def test_incidents_of_version_9_are_events_by_themselves(store_url: str, engine: Engine) -> None:
    store = Store.open(store_url)
    with store.transaction() as writer:
        add_signal(writer, "a")
        told = writer.put_incident(incident(1, 100))
        over = writer.put_incident(incident(1, 200, open=False, closed=230, ended="returned"))
        imported = writer.put_incident(incident(1, 300, open=False, closed=330, ended="imported"))
        withheld = writer.put_incident(incident(1, 400))
        writer.change_incident(withheld, withheld=True)
        writer.change_incident(told, acknowledged=7, acknowledged_by="ada")
        tell(writer, "mail", told, 10)
        writer.mark_delivered([row.id for row in writer.outbox_due("mail", 10, 9)], now=11)
    store.close()
    as_version_9(engine)
    store = Store.open(store_url)
    assert version(engine) == newest_version()
    assert tables(engine) == {name: set(table.c.keys()) for name, table in migrations.schema.metadata.tables.items()}
    with store.transaction() as writer:
        events = [(number, writer.event_of(number)) for number in (told, over, imported, withheld)]
        assert [(number, event and (event.id, event.open)) for number, event in events] == [
            (told, (told, True)), (over, (over, False)), (imported, None), (withheld, None),
        ]  # fmt: skip
        first = events[0][1]
        assert first is not None
        assert (first.first, first.last, first.shared, first.acknowledged_by) == (100, 100, (), "ada")
        assert writer.delivered_firing("mail") == [told]
        assert writer.add_event("alarm", 500, ["place:a"], 501) > over
    store.close()


def test_templates_can_be_stored_in_a_store_of_version_10(store_url: str, engine: Engine) -> None:
    Store.open(store_url).close()
    as_version_10(engine)
    store = Store.open(store_url)
    assert version(engine) == newest_version()
    assert tables(engine) == {name: set(table.c.keys()) for name, table in migrations.schema.metadata.tables.items()}
    first, other = TemplateRow("pump/*", {"unit": "bar"}, 5, "ada"), TemplateRow("*", {"detector": {"gap": 3}}, 6, "")
    with store.transaction() as writer:
        assert writer.templates() == []
        writer.put_template(first)
        writer.put_template(other)
        writer.put_template(replace(first, template={"unit": "\u00b0C"}, changed=7))
    with store.transaction() as writer:
        assert writer.templates() == [other, replace(first, template={"unit": "\u00b0C"}, changed=7)]
        writer.remove_template("*")
        with pytest.raises(UnknownError, match=r"there is no stored template '\*'"):
            writer.remove_template("*")
    store.close()


#: Settings of a detector in version 11, and what becomes of them.
OF_VERSION_11: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"gap": 2, "merge_features": "mean"}, {"gap": 2}),
    ({"views": None}, {"views": None}),
    ({"views": "all"}, {"views": None}),
    ({"views": "paper", "forecaster": "last-value"}, {"views": ["error"], "forecaster": "last-value"}),
    ({"views": ["level"], "nonconformity": "high"}, {"views": None, "nonconformity": "high"}),
    ({"views": ["error", "level"]}, {"views": ["error"]}),
    ({"views": "horizons, error,shape-light,quiet"}, {"views": ["error", "shape", "quiet"]}),
    ({"refresh": 50, "views": ["error"]}, {"refresh": 18, "views": ["error"]}),
    ({"refresh": 50, "forecaster": "embedded"}, {"refresh": 18, "forecaster": "embedded"}),
    ({"refresh": 50, "preset": "light"}, {"refresh": 50, "preset": "light"}),
    ({"refresh": 50, "forecaster": "last-value"}, {"refresh": 50, "forecaster": "last-value"}),
    ({"forecaster": None}, {"forecaster": None}),
]


@pytest.mark.parametrize(("before", "after"), OF_VERSION_11)
def test_settings_of_version_11_lose_what_detectors_no_longer_have(
    store_url: str, engine: Engine, before: dict[str, Any], after: dict[str, Any]
) -> None:
    store = Store.open(store_url)
    with store.transaction() as writer:
        signal = writer.add_signal("a", ["value"], before, created=7)
        writer.put_template(TemplateRow("a", {"unit": "bar", "detector": before}, 5, "ada"))
        writer.put_template(TemplateRow("b", {"unit": "bar"}, 5, "ada"))
        writer.add_foretold([(signal.id, 10, b"of another network")])
    store.close()
    as_version_11(engine)
    store = Store.open(store_url)
    assert version(engine) == newest_version()
    with store.reading() as reader:
        assert [row.settings for row in reader.signals()] == [after]
        assert [row.template for row in reader.templates()] == [{"unit": "bar", "detector": after}, {"unit": "bar"}]
        assert reader.foretold([signal.id]) == {signal.id: []}
    store.close()
    DetectorSettings.check(after)


def test_a_store_that_does_not_know_its_version_is_refused(store_url: str, engine: Engine) -> None:
    migrate(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM schema_version")
    with pytest.raises(StoreError, match="the version of its tables is missing"):
        Store.open(store_url)


def test_two_may_open_a_new_database_at_once(store_url: str) -> None:
    barrier, failures = threading.Barrier(4), []

    def open_it() -> None:
        barrier.wait()
        try:
            Store.open(store_url).close()
        except StoreError as error:
            failures.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
