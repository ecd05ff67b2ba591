"""`tocsin report` on a real store, looked at in a real browser and sent by real mail."""

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from html import escape
from pathlib import Path

import numpy as np
import pytest

from tests.cli.calling import invoke, words
from tests.service.engine.helpers import QUICK
from tests.service.sinks.office import NOTHING_SEEN, Office, facts
from tests.service.sinks.test_mail import Post
from tocsin.detection import Detector
from tocsin.evaluation import detectable, median_and_worst
from tocsin_monitor.engine import detectability
from tocsin_monitor.observations import Status, StoredVerdict
from tocsin_monitor.report import Period, gather, summary_of
from tocsin_monitor.store import ObservationRow

MINUTE, HOUR, DAY = 60 * 10**9, 3600 * 10**9, 86400 * 10**9
NASTY = "plant/<script>alert(1)</script>"


def observe(office: Office, name: str, now: int, *, faults: tuple[int, ...] = (), warm: bool = True) -> None:
    """Eight days of a signal, one observation every ten minutes, with faults so many hours ago."""
    signal, noise = office.signal(name), np.random.default_rng(0)
    rows = []
    for moment in range(now - 8 * DAY, now, 10 * MINUTE):
        wave = math.sin(moment / DAY * 2 * math.pi)
        alarm = any(0 <= moment - (now - hours * HOUR) < HOUR for hours in faults)
        value = wave + float(noise.normal(scale=0.1)) + 2 * alarm
        judged = StoredVerdict(
            (value,), (wave,), (wave - 0.4,), (wave + 0.4,), 0.5, 1e-4 if alarm else 0.3, (0.5,), alarm=alarm, warm=warm
        )
        rows.append(ObservationRow(signal.id, moment, Status.SCORED, judged))
    with office.store.transaction() as writer:
        writer.add_observations(rows)
        writer.change_signal(signal.id, settings={"alarm_rate": 0.001})


def begin(office: Office, name: str, now: int, hours: int, **given: object) -> int:
    start = now - hours * HOUR
    times = {"start": start, "end": start + HOUR, "peak": start, "opened": start + MINUTE}
    number = office.begin(name, **{"severity": 4.1, **times, **given})
    with office.store.transaction() as writer:
        writer.mark_delivered([row.id for row in office.due("sink")], start + 2 * MINUTE)
    return number


@pytest.fixture
def now() -> int:
    return time.time_ns() // MINUTE * MINUTE


@pytest.fixture
def office(tmp_path: Path, now: int) -> Iterator[Office]:
    """A busy signal, one with a fault, a silent one, and one that warms up."""
    made = Office(tmp_path, "sink")
    observe(made, NASTY, now, faults=(100, 60, 30, 5))
    observe(made, "plant/valve", now, faults=(48,))
    observe(made, "plant/new", now, warm=False)
    for hours in (100, 60, 30):
        made.end(begin(made, NASTY, now, hours), closed=now)  # its observations arrived late
    made.change(begin(made, NASTY, now, 5), acknowledged=now - 4 * HOUR, acknowledged_by="Eve", label="false alarm")
    fault = begin(made, "plant/valve", now, 48)
    made.end(fault, "accepted", now - 47 * HOUR)
    made.change(fault, label="fault")
    begin(made, "plant/new", now, 20, kind="silence", p=math.nan, **NOTHING_SEEN)
    made.end(begin(made, "plant/valve", now, 190), closed=now - 189 * HOUR)  # before the week
    yield made
    made.close()


def test_what_is_gathered(office: Office, now: int) -> None:
    with office.store.reading() as reader:
        report = gather(reader, reader.signals(), Period(now - 7 * DAY, now))
    busy, valve = report.by_attention[0], next(one for one in report.signals if one.row.name == "plant/valve")
    assert (busy.row.name, len(busy.incidents), busy.messages, busy.false_alarms) == (NASTY, 4, 7, 1)
    assert busy.open_seconds == pytest.approx((3 * HOUR + 5 * HOUR) / 1e9)
    assert busy.acknowledged_after == pytest.approx((HOUR - MINUTE) / 1e9)
    assert len(valve.incidents) == 1  # not the one before
    assert busy.audit is not None
    assert valve.audit is not None
    assert (busy.audit.alarms, busy.audit.faults, busy.audit.observations) == (4, 0, 1008)
    assert (valve.audit.alarms, valve.audit.faults, valve.audit.rate) == (1, 1, 0.0)
    together = report.audits["incidents"]
    assert (together.alarms, together.observations) == (5, 2016)
    assert together.low <= 4 / 2016 <= together.high
    assert summary_of(report) == [
        "6 events with 6 incidents; 1 of the events silences, 2 still open. 3 of 3 signals had incidents.",
        "5 incidents raised (1 labelled as faults), 2.02 tolerated in 2,016 observations: cannot tell yet.",
        f"Most attention: {NASTY} (4 events, 7 messages).",
    ]


@pytest.mark.slow
def test_the_page(office: Office, now: int, tmp_path: Path) -> None:
    page = tmp_path / "week.html"
    done = invoke("report", "--week", "--data", tmp_path, "--out", page)
    assert done.exit_code == 0, done.output
    assert "6 events with 6 incidents" in words(done)
    text = page.read_text()
    assert "<script>alert(1)" not in text
    assert "\\u003cscript>alert(1)" in text  # in the data of the charts
    assert "plant/&lt;script&gt;" in text


@pytest.mark.slow
def test_what_can_be_found(office: Office, now: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those first that took most attention; what the library says of what is stored, or why it is not known."""
    few = {"cases": 8, "lasts": 20}  # at an alarm rate this high, some places are in incidents
    monkeypatch.setattr(detectability, "detectable", lambda *given, **more: detectable(*given, **{**more, **few}))
    with office.store.transaction() as writer:
        (new,) = [row for row in writer.signals() if row.name == "plant/new"]
        writer.change_signal(new.id, settings=QUICK)
        rows = writer.observations(new.id, limit=10**6)
    office.signal("plant/empty")
    page = tmp_path / "week.html"
    done = invoke(
        "report", "--data", tmp_path, "--out", page, "--signal", "plant/new", "--signal", "plant/empty",
        "--detectable", "5",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    times = np.array([row.time for row in rows]).view("datetime64[ns]")
    alone = detectable(Detector(["value"], **QUICK), [row.judged.value[0] for row in rows], times, **few)
    alone = replace(alone, unit="bar")
    assert done.stdout.index(alone.sentences[0]) < done.stdout.index("has no stored observations")
    assert all(escape(sentence) in page.read_text() for sentence in alone.sentences)


@pytest.mark.slow
def test_what_can_be_found_in_signals_of_a_template(
    office: Office, now: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The median and the worst of those that were tried, after what each of them finds."""
    few = {"cases": 4, "lasts": 20}
    monkeypatch.setattr(detectability, "detectable", lambda *given, **more: detectable(*given, **{**more, **few}))
    observe(office, "plant/newer", now)
    with office.store.reading() as reader:
        rows = {row.name: row for row in reader.signals()}
    found = {}
    for name in ("plant/new", "plant/newer"):
        with office.store.transaction() as writer:
            writer.change_signal(rows[name].id, settings=QUICK, template="plant/*")
            stored = writer.observations(rows[name].id, limit=10**6)
        times = np.array([row.time for row in stored]).view("datetime64[ns]")
        alone = detectable(Detector(["value"], **QUICK), [row.judged.value[0] for row in stored], times, **few)
        found[name] = replace(alone, unit="bar")
    page = tmp_path / "week.html"
    asked = ("--signal", "plant/new*", "--detectable", "5")
    done = invoke("report", "--data", tmp_path, "--out", page, *asked)
    assert done.exit_code == 0, done.output
    printed = done.stdout.splitlines()
    assert printed[printed.index("template plant/*:") + 1 :] == [f"  {one}" for one in median_and_worst(found)]
    assert all(escape(sentence) in page.read_text() for sentence in median_and_worst(found))
    alone = invoke("report", "--data", tmp_path, "--signal", "plant/new", "--detectable", "5")
    assert "template" not in alone.stdout


@pytest.mark.slow
def test_a_stopped_gateway_is_one_row(office: Office, now: int, tmp_path: Path) -> None:
    office.make_events()
    for number in range(6):
        name = f"gateway/{number}"
        observe(office, name, now)
        begin(office, name, now, 2, kind="silence", p=math.nan, **NOTHING_SEEN)
    page = tmp_path / "week.html"
    assert invoke("report", "--data", tmp_path, "--out", page).exit_code == 0
    text = page.read_text()
    assert text.count("gateway: 6 signals silent") == 1
    assert "<summary>6 incidents</summary>" in text


@pytest.mark.slow
def test_by_mail(office: Office, now: int, tmp_path: Path) -> None:
    post = Post()
    config = tmp_path / "tocsin.toml"
    config.write_text(
        f'[[sinks.mail]]\nname = "plant"\nhost = "127.0.0.1"\nport = {post.port}\nsecurity = "none"\n'
        'sender = "Tocsin <tocsin@plant.example>"\nrecipients = ["a@plant.example"]\n'
    )
    try:
        done = invoke("report", "--mail", "plant", "--config", config, "--data", tmp_path)
        assert done.exit_code == 0, done.output
        refused = invoke("report", "--mail", "other", "--config", config, "--data", tmp_path)
    finally:
        post.close()
    ((_, mail),) = post.mails
    assert mail["Subject"].startswith("Tocsin: What happened from ")
    body = mail.get_body(("plain",))
    assert body is not None
    assert "6 events with 6 incidents" in body.get_content()
    (attached,) = mail.iter_attachments()
    assert (attached.get_content_type(), attached.get_filename()) == ("text/html", "tocsin-report.html")
    assert "What was promised and kept" in attached.get_content()
    assert refused.exit_code == 1
    assert "no mail sink 'other' in the settings; mail sinks: plant" in words(refused)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--week", "--from", "2026-01-01"], "--week and --from exclude each other"),
        (["--from", "2026-01-02", "--to", "2026-01-01"], "2026-01-02 is not before 2026-01-01"),
        (["--from", "nonsense"], "nonsense"),
        (["--out", "week.pdf"], "must end in one of .html"),
        (["--signal", "nothing*"], "no signal matches nothing*"),
    ],
)
def test_what_makes_no_sense_is_refused(office: Office, tmp_path: Path, arguments: list[str], says: str) -> None:
    done = invoke("report", "--data", tmp_path, *arguments)
    assert done.exit_code in (1, 2)
    assert says in words(done)


def test_a_period_without_anything(office: Office, tmp_path: Path) -> None:
    page = tmp_path / "empty.html"
    year = datetime.now(UTC).year - 10
    done = invoke("report", "--from", f"{year}-01-01", "--to", f"{year}-02-01", "--data", tmp_path, "--out", page)
    assert done.exit_code == 0, done.output
    # Silences and incidents that are open now began later.
    assert "0 events with 0 incidents" in words(done)
    assert "Nobody was needed." in page.read_text()


@pytest.fixture
def stopped(office: Office, now: int) -> Office:
    """Three pumps of a line, one after the other, acknowledged at once; a fourth joins; and what a budget withholds."""
    office.make_events(window=2 * 3600, hold=0)
    for place, name in enumerate("abc"):
        observe(office, f"plant/line-3/{name}", now, faults=(20,))
        begin(office, f"plant/line-3/{name}", now, 20, start=now - 20 * HOUR + place * MINUTE, severity=4.5 + place % 2)
    event = office.incident(begin(office, "plant/line-3/d", now, 19)).event
    assert event is not None
    withheld = facts(office.signal("plant/line-4/e").id, start=now - 18 * HOUR)
    with office.store.transaction() as writer:
        acknowledged = {"acknowledged": now - 19 * HOUR, "acknowledged_by": "Ada"}
        writer.change_event(event, **acknowledged)
        writer.change_members(event, **acknowledged)
        writer.change_incident(writer.put_incident(withheld), withheld=True)
        suppressed = writer.put_incident(replace(withheld, start=withheld.start + HOUR))
        writer.change_incident(suppressed, suppressed=True)
    return office


@pytest.mark.slow
def test_an_event_is_one_row_and_takes_attention_once(stopped: Office, now: int, tmp_path: Path) -> None:
    with stopped.store.reading() as reader:
        report = gather(reader, reader.signals(), Period(now - 7 * DAY, now))
    assert summary_of(report)[:3] == [
        "7 events with 10 incidents; 1 of the events silences, 3 still open. 8 of 8 signals had incidents.",
        "Budgets withheld 1 incident: nobody was told.",
        "Labels that hold suppressed 1 incident: nobody was told.",
    ]
    of = {signal.row.name: signal for signal in report.signals}
    assert [(one.events, one.messages, len(one.incidents)) for one in (of[f"plant/line-3/{it}"] for it in "abcd")] == [
        (1, 1, 1), (0, 0, 1), (0, 0, 1), (0, 0, 1),
    ]  # fmt: skip
    # Whoever joins what somebody knows of waits for nobody.
    assert of["plant/line-3/a"].acknowledged_after == pytest.approx((HOUR - MINUTE) / 1e9)
    assert of["plant/line-3/d"].acknowledged_after is None
    assert sum(one.messages for one in report.signals) == 11

    page = tmp_path / "week.html"
    assert invoke("report", "--data", tmp_path, "--out", page).exit_code == 0
    rows = page.read_text().split('aria-labelledby="promised"')[0].split("<tr")[2:]
    assert len(rows) == 9  # seven events, and what was withheld or suppressed
    (row,) = [one for one in rows if "plant/line-3" in one]
    for told in (
        '<td class="name">plant/line-3</td>', "4 of 4 open", "5.5", "plant/line-3: 4 incidents on 4 signals",
        "First to move: plant/line-3/a. Strongest: plant/line-3/b: 2 above the forecast.", "acknowledged by Ada",
        "plant/line-3/d: 2 above the forecast",
    ):  # fmt: skip
        assert told in row
    withheld = [one for one in rows if "plant/line-4/e" in one]
    assert ["not reported" in one for one in withheld] == [True, True]
