"""Series and frames in, the same kind back: index, names, time zone; many signals; results to look at."""

import copy
import pickle
import sys
from html.parser import HTMLParser
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from matplotlib.dates import num2date

from tests.cases import full
from tests.detection.helpers import LAST, MovingMean, hard_values, same_verdicts
from tocsin import Detector, Fleet, Result, Results
from tocsin.data import DataError, is_frame

ZONE = "Europe/Berlin"
HOURS = pd.date_range("2024-03-20", periods=700, freq="h", tz=ZONE, name="when")  # the clock goes forward within
VALUES = np.where(np.isfinite(hard_values(1, 700, 3)), hard_values(1, 700, 3), np.nan)
VALUES[680:690] += 40.0  # after the warm-up
WEEKLY = {"window": 250, "forecaster": "last-value", "alarm_rate": "2/week"}
COLUMNS = {"flow": VALUES[:, 0], "heat": VALUES[:, 1]}
BERLIN = {
    "pandas": pd.DataFrame({"when": HOURS, **COLUMNS}),
    "polars": pl.DataFrame({"when": pl.Series(HOURS).cast(pl.Datetime("us", ZONE)), **COLUMNS}),
    "pyarrow": pa.table({"when": pa.array(HOURS.tz_convert("UTC"), type=pa.timestamp("ms", ZONE)), **COLUMNS}),
}
SERIES = {
    "pandas": lambda values: pd.Series(values, name="flow"),
    "polars": lambda values: pl.Series("flow", values),
    "chunked": lambda values: pa.chunked_array([values]),
    "array": lambda values: pa.array(values),
}


def times_of(frame, name="when"):
    return pd.DatetimeIndex(frame[name].to_pandas() if hasattr(frame[name], "to_pandas") else frame[name])


def type_of(frame, name):
    return frame.schema.field(name).type if isinstance(frame, pa.Table) else frame[name].dtype


def expected(features=2, **settings):
    detector = Detector(features, **{**LAST, **settings})
    return detector.run(VALUES[:, :features])


@pytest.mark.parametrize("kind", BERLIN)
def test_frames_come_back_with_their_names_and_their_zone(kind):
    frame = BERLIN[kind]
    detector = Detector(**LAST)
    found = detector.detect(frame)
    assert type(found) is type(frame)
    assert detector.features == ["flow", "heat"]
    assert (times_of(found) == HOURS).all()
    assert type_of(found, "when") == type_of(frame, "when")
    # The interval tells how long a day is.
    np.testing.assert_array_equal(np.asarray(found["p"]), expected(interval="1h").p)
    np.testing.assert_array_equal(np.asarray(found["value heat"]), VALUES[:, 1])


@pytest.mark.parametrize("kind", BERLIN)
def test_incidents_are_a_frame_in_the_caller_s_zone(kind):
    result = Detector(**LAST).run(BERLIN[kind])
    incidents = result.incidents
    assert type(incidents) is type(BERLIN[kind])
    assert len(incidents) == len(result.incident_list) > 0
    starts = times_of(incidents, "start")
    assert str(starts.tz) == ZONE
    assert (starts == [HOURS[one.first] for one in result.incident_list]).all()
    none = Detector(**LAST, min_duration=1000).run(BERLIN[kind]).incidents
    assert len(none) == 0
    assert str(times_of(none, "start").tz) == ZONE


def test_a_series_of_pandas_keeps_its_index():
    series = pd.Series(VALUES[:, 0], index=HOURS, name="flow")
    detector = Detector(**WEEKLY)
    result = detector.run(series)
    assert result.signal == "flow"
    assert detector.fleet.interval == 3600
    assert detector.alarm_rate == pytest.approx(2 / 168)
    assert result.frame.index is HOURS
    assert "time" not in result.frame
    pd.testing.assert_series_equal(result["value"], series, check_names=False)
    assert series[result["alarm"]].index[0] == HOURS[np.argmax(result.alarm)]


def test_an_index_with_a_gap_comes_back_without_it():
    series = pd.Series(VALUES[:, 0], index=HOURS).drop(HOURS[300:303])
    found = Detector(**LAST).detect(series)
    assert (found.index == HOURS).all()
    assert found.index.name == "when"
    assert str(found.index.tz) == ZONE
    assert found["value"].isna()[HOURS[300:303]].all()


def test_an_index_that_is_no_time_comes_back():
    frame = pd.DataFrame({"flow": VALUES[:, 0]}, index=[f"batch {number}" for number in range(700)])
    found = Detector(**LAST).detect(frame)
    assert found.index.equals(frame.index)
    assert "time" not in found


@pytest.mark.parametrize("kind", SERIES)
def test_series_of_every_kind(kind):
    result = Detector(**LAST).run(SERIES[kind](VALUES[:, 0]))
    same_verdicts(result.verdicts, expected(1).verdicts)
    library = {"pandas": pd.DataFrame, "polars": pl.DataFrame}.get(kind, pa.Table)
    assert isinstance(result.frame, library)
    assert isinstance(result.incidents, library)


def test_times_of_other_kinds_come_back():
    days = pl.DataFrame({"day": pl.date_range(pl.date(2024, 1, 1), pl.date(2025, 11, 30), eager=True)})
    days = days.with_columns(v=pl.Series(VALUES[: len(days), 0]))
    assert Detector(**LAST).detect(days).schema["day"] == pl.Date
    steps = pl.DataFrame({"step": np.arange(700), "v": VALUES[:, 0]})
    assert Detector(**LAST).detect(steps, time="step").schema["step"] == pl.Int64


def test_arrays_of_one_feature_are_one_dimensional():
    result = Detector(**LAST).run(VALUES[:, 0])
    for name in ("value", "forecast", "low", "high", "p", "alarm", "severity", "feature_p", "warm", "opened", "open"):
        assert getattr(result, name).shape == (700,), name
    several = Detector(**LAST).run(VALUES)  # which tells that there are three
    assert several.value.shape == several.feature_p.shape == (700, 3)
    assert several.p.shape == (700,)
    assert isinstance(several.frame, pd.DataFrame)
    assert len(result) == 700


def test_features_go_by_their_names():
    frame = BERLIN["pandas"].assign(other=1.0)
    detector = Detector(["heat", "flow"], **LAST)
    found = detector.detect(frame)
    np.testing.assert_array_equal(found["value heat"], VALUES[:, 1])
    later = frame.assign(when=frame["when"] + pd.Timedelta(hours=700))[["when", "flow", "heat"]]
    np.testing.assert_array_equal(detector.detect(later)["value heat"], VALUES[:, 1])
    numbered = Detector(2, **LAST)
    numbered.detect(BERLIN["pandas"])
    assert numbered.features == ["flow", "heat"]
    much_later = later.assign(when=later["when"] + pd.Timedelta(hours=700)).rename(columns={"heat": "cold"})
    with pytest.raises(ValueError, match="must have the features heat, flow as before, got flow, cold; choose"):
        detector.detect(much_later)
    assert detector.observations == 1400


def test_the_first_data_tell_and_later_ones_do_not():
    detector = Detector(**LAST)
    assert detector.features == ["feature"]  # to look changes nothing
    detector.run(BERLIN["pandas"])
    assert (detector.features, detector.fleet.interval) == (["flow", "heat"], 3600.0)
    with pytest.raises(ValueError, match="must have 2 features like the detector, got 1: flow"):
        detector.run(pd.Series(VALUES[:, 0], index=HOURS + pd.Timedelta(days=90), name="flow"))


def test_calling_twice_goes_on_and_a_clone_begins_anew():
    series = pd.Series(VALUES[:, 0], index=HOURS, name="flow")
    detector = Detector(**WEEKLY)
    first, second = detector.run(series[:600]), detector.run(series[602:])
    whole = Detector(**WEEKLY).run(series.drop(HOURS[600:602]))
    np.testing.assert_array_equal(np.r_[first.p, second.p], np.delete(whole.p, [600, 601]))
    assert second.before == 602
    assert sum(one.first >= 602 for one in whole.incident_list) <= len(second.incident_list)
    with pytest.raises(
        ValueError, match=r"time must be later than the last one.*continues.*`clone\(\)` to start afresh"
    ):
        detector.run(series)
    again = detector.clone()
    assert again.observations == 0
    np.testing.assert_array_equal(again.run(series[:600]).p, first.p)


def test_detectors_are_copied_and_pickled_as_they_are():
    waiting = pickle.loads(pickle.dumps(Detector(**WEEKLY)))
    waiting.run(pd.Series(VALUES[:, 0], index=HOURS))
    for detector in (Detector(**LAST), Detector(**{**LAST, "forecaster": MovingMean()})):
        detector.run(VALUES[:300, 0])
        for other in (copy.deepcopy(detector), pickle.loads(pickle.dumps(detector))):
            assert repr(other.update(50.0)) == repr(copy.deepcopy(detector).update(50.0))
            assert other.clone().observations == 0


LONG = pd.concat(
    [
        pd.DataFrame({"flow": VALUES[k:, 0], "heat": VALUES[k:, 1], "pump": name}, index=HOURS[k:])
        for k, name in ((0, "a"), (50, "b"))
    ]
)


def test_long_frames_are_many_signals():
    fleet = Fleet(**WEEKLY)
    results = fleet.run(LONG, id="pump")
    assert isinstance(results, Results)
    assert (fleet.names, fleet.features, list(results)) == (["a", "b"], ["flow", "heat"], ["a", "b"])
    for name, start in (("a", 0), ("b", 50)):
        alone = Detector(2, **WEEKLY, interval="1h").run(VALUES[start:, :2])
        same_verdicts(results[name].verdicts, alone.verdicts)
        assert len(results[name].incident_list) == len(alone.incident_list)
    assert results.frame.columns[0] == "pump"
    assert results.frame.index.tz is not None
    assert len(results.frame) == 1350
    found = {name for name, one in results.items() if one.incident_list}
    assert found
    assert set(results.incidents["signal"]) == found
    assert type(Fleet(**LAST).detect(pl.from_pandas(LONG.reset_index()), id="pump")) is pl.DataFrame


def test_columns_of_a_wide_frame_are_signals():
    frame = BERLIN["polars"]
    fleet = Fleet(["heat", "flow"], **LAST)
    results = fleet.run(frame)
    for number, name in enumerate(("flow", "heat")):
        same_verdicts(results[name].verdicts, Detector(**LAST, interval="1h").run(VALUES[:, number]).verdicts)
    assert fleet.incidents(fleet.names.index("flow")) != []
    with pytest.raises(ValueError, match=r"signals must be among the 2 of the fleet, 'heat', 'flow', got 'cold'"):
        fleet.run(frame.rename({"heat": "cold"}))
    with pytest.raises(
        ValueError, match="id must be the column with the signal's name, because each signal has 2 features"
    ):
        Fleet(features=2, **LAST).run(frame)


def test_a_fleet_goes_on_from_frame_to_frame(tmp_path):
    frame, fleet = BERLIN["polars"], Fleet(**WEEKLY)
    first = fleet.run(frame[:400])
    fleet.save(tmp_path / "fleet.npz")
    for one in (fleet, Fleet.load(tmp_path / "fleet.npz")):
        second = one.run(frame[403:])
        whole = Fleet(**WEEKLY).run(pl.concat([frame[:400], frame[403:]]))
        for name in ("flow", "heat"):
            joined = np.r_[first[name].p, second[name].p]
            np.testing.assert_array_equal(joined, np.delete(whole[name].p, slice(400, 403)))
        with pytest.raises(ValueError, match=r"time must be later.*`clone\(\)` to start afresh"):
            one.run(frame)
    assert fleet.clone().run(frame[:400])["flow"].before == 0


@pytest.mark.slow
def test_a_budget_is_one_whatever_the_signals_start_with():
    settings = {"window": 250, "forecaster": "last-value", "budget": "1/week"}
    fleet = Fleet(["a", "b"], 2, **settings, interval="1h")
    for at in range(700):
        rows = [0] if at < 50 else [0, 1]
        fleet.update(np.stack([VALUES[at, :2]] * len(rows)), rows=rows)
    results = Fleet(**settings).run(LONG, id="pump")
    assert [one.first for one in results.incident_list] == [
        one.first for name in (0, 1) for one in fleet.incidents(name)
    ]
    assert "at a budget of 1/week" in repr(results)


SECONDS = pd.date_range("2024-01-01", periods=700 * 6, freq="10s")


@pytest.mark.slow
@pytest.mark.parametrize("aggregate", ["mean", full("last"), full("max"), full("sum"), "count"])
def test_rows_are_put_together(aggregate):
    raw = pd.Series(np.random.default_rng(0).normal(size=len(SECONDS)), index=SECONDS, name="flow")
    detector = Detector(**{**WEEKLY, "alarm_rate": "3/day"}, every="1min", aggregate=aggregate)
    assert detector.alarm_rate == pytest.approx(3 / 1440)  # which is the interval
    found = detector.detect(raw)
    together = getattr(raw.resample("1min"), aggregate)()
    np.testing.assert_allclose(found["value"], together)
    assert (found.index == together.index).all()
    with pytest.raises(ValueError, match="every=60 aggregates the rows of frames: pass them to `run` or `detect`"):
        detector.update(1.0)
    with pytest.raises(ValueError, match="every=60 aggregates the rows"):
        detector.run([1.0])
    restored = Detector.from_bytes(detector.to_bytes())
    assert (restored.fleet.every, restored.fleet.aggregate) == (60.0, aggregate)
    both = Fleet(**LAST, every="1min", aggregate=aggregate).run(pd.DataFrame({"a": raw, "b": -raw}))
    np.testing.assert_allclose(both["a"].value, together)
    with pytest.raises(DataError, match="`every` needs times"):
        Detector(**LAST, every="1min").detect(pl.DataFrame({"a": [1.0, 2.0]}))


def test_arguments_of_frames_and_of_arrays_are_not_mixed():
    with pytest.raises(ValueError, match="times must not be given with a frame, which has a `time` column"):
        Detector(**LAST).run(pl.DataFrame({"a": [1.0]}), [1])
    with pytest.raises(ValueError, match="time names a column and needs a frame, got 't' with list"):
        Detector(**LAST).run([1.0], time="t")
    with pytest.raises(TypeError, match="data must be a frame, got list: use run_arrays for arrays"):
        Fleet(1, **LAST).run([[1.0]])
    with pytest.raises(TypeError, match="frame must be an eager frame or series"):
        Detector(**LAST).run(pl.LazyFrame({"a": [1.0]}))
    assert not is_frame([1.0])
    assert not is_frame(np.zeros(3))


class Page(HTMLParser):
    """Whether what is opened is closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_results_are_worth_looking_at():
    result = Detector(**WEEKLY).run(pd.Series(VALUES[:, 0], index=HOURS, name="flow <&>"))
    text, page = repr(result), result._repr_html_()
    assert text.startswith("flow <&>: 700 observations, 2024-03-20 00:00+01:00 to 2024-04-18 04:00+02:00, every 1 h\n")
    assert f"{len(result.incident_list)} incident" in text
    assert "at an alarm rate of 2/week" in text
    parsed = Page(page)
    assert not parsed.open
    assert {"svg", "path", "rect", "table"} <= set(parsed.seen)
    assert "flow &lt;&amp;&gt;" in page
    assert "<script" not in page
    assert "http" not in page
    assert len(page) < 60_000
    many = Fleet(**WEEKLY).run(LONG, id="pump")
    assert repr(many).startswith("2 signals, 1,350 observations, every 1 h\n")
    assert not Page(many._repr_html_()).open
    for other in (Detector(**LAST).run([1.0, 2.0]), Detector(**LAST).run([]), Detector(**LAST).run([np.nan] * 9)):
        assert repr(other).startswith("signal: ")
        assert not Page(other._repr_html_()).open


def test_detectors_say_what_they_are():
    assert repr(Detector(**WEEKLY)) == "Detector that waits for its first frame; alarm rate 2/week"
    detector = Detector(["flow"], **LAST)
    detector.update(1.0)
    assert repr(detector) == "Detector of flow; alarm rate 0.03; observations: 1; incidents: 0"
    assert repr(Fleet(**LAST)) == "Fleet that waits for its first frame; alarm rate 0.03"


@pytest.mark.slow
def test_pictures():
    detector = Detector(**WEEKLY)
    series = pd.Series(VALUES[:, 0], index=HOURS, name="flow")
    first = detector.run(series[:560])
    figure = first.plot()
    assert figure._repr_png_().startswith(b"\x89PNG")
    ticks = figure.axes[0].xaxis.get_major_locator()()
    assert {moment.astimezone(ZoneInfo(ZONE)).hour for moment in num2date(ticks)} == {
        0
    }  # where the caller's day begins
    later = detector.run(series[560:])
    assert later.before == 560
    assert later.plot()._repr_png_()
    assert Detector(**LAST).run(VALUES[:, 0]).plot()._repr_png_()
    assert Fleet(**WEEKLY).run(LONG, id="pump").plot()._repr_png_()


def test_pictures_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pictures need matplotlib: pip install 'tocsin\[plot\]'"):
        Detector(**LAST).run([1.0, 2.0]).plot()


def test_a_result_is_public():
    assert isinstance(Detector(**LAST).run([1.0]), Result)
