"""What a detector accepts, what it refuses and how it says so."""

import inspect
import re
import warnings
from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from tests.detection.helpers import SMALL, MovingMean
from tocsin import checks
from tocsin.conformal.scorer import MOST_LAGS
from tocsin.detection import NONCONFORMITIES, Detector, Fleet, ResolutionWarning
from tocsin.detection.paper.scoring import PAPER_OPTIONS
from tocsin.detection.settings.alarm_rate import LEAST_RATE, most_beyond, parse_alarm_rate, sizes
from tocsin.detection.settings.detector_settings import PRESETS
from tocsin.detection.views import available_views
from tocsin.forecasting import LastValue

QUICK = {"forecaster": "last-value"}


@pytest.mark.parametrize(
    ("given", "seconds", "rate"),
    [
        (0.01, None, 0.01),
        (np.float32(0.25), None, 0.25),
        (Fraction(1, 50), None, 0.02),
        ("0.01", None, 0.01),
        (" 1e-3 ", None, 0.001),
        ("0.01", 60.0, 0.01),
        ("1/day", 300, 300 / 86400),
        ("2 per week", 3600, 2 * 3600 / (7 * 86400)),
        ("0.5/hour", 60, 0.5 / 60),
        (".5 / hours", 60, 0.5 / 60),
        ("10/Months", 86400, 10 / 30),
        ("  3  per  MINUTE ", 1, 3 / 60),
        ("1e-2/second", 1, 0.01),
        ("2e1/day", 60, 20 / 1440),
        ("1./day", 60, 1 / 1440),
    ],
)
def test_alarm_rates_as_people_say_them(given, seconds, rate):
    assert parse_alarm_rate(given, seconds) == pytest.approx(rate, rel=1e-12)


@pytest.mark.parametrize("given", [0, 0.0, -0.1, 0.5, 1, float("nan"), float("inf"), 10**400])
def test_numbers_that_are_no_alarm_rates_are_refused(given):
    with pytest.raises(
        ValueError, match=r"alarm_rate must be a number >= 1e-18 and < 0.5, got " + re.escape(repr(given))
    ):
        parse_alarm_rate(given, 60.0)


@pytest.mark.parametrize("given", [None, True, [0.01], b"0.01", 1j])
def test_other_kinds_of_alarm_rates_are_refused(given):
    with pytest.raises(
        TypeError, match=r"alarm_rate must be a number >= 1e-18 and < 0.5, got " + re.escape(repr(given))
    ):
        parse_alarm_rate(given, 60.0)


@pytest.mark.parametrize(
    "given",
    ["", "often", "1/fortnight", "/day", "1/", "1 day", "0/day", "-1/day", "1..5/day", "./day", "1/2/day", "nan", "0.7",
     "nan/day", "1/days/week", "1 per", "1e400/week", "one per day", "1/da", "1e/day", "1/ss"],
)  # fmt: skip
def test_nonsense_is_no_alarm_rate(given):
    message = r"alarm_rate must be a number between 0 and 0.5.*'1/day'.*per second.*month.*got " + re.escape(
        repr(given)
    )
    with pytest.raises(ValueError, match=message):
        parse_alarm_rate(given, 60.0)


def test_a_budget_needs_an_interval():
    message = "alarm_rate='1/day' is a budget over time: set the sampling interval"
    with pytest.raises(ValueError, match=message):
        parse_alarm_rate("1/day", None)
    detector = Detector(alarm_rate="1/day", **QUICK)  # it may come with a frame
    with pytest.raises(ValueError, match=message):
        detector.update(1.0)
    with pytest.raises(ValueError, match=message):
        detector.run([1.0, 2.0])


@pytest.mark.parametrize(("given", "seconds"), [("1/day", 86400), ("1/minute", 60), ("30/minute", 1)])
def test_a_budget_of_an_alarm_at_every_other_observation_is_refused(given, seconds):
    message = rf"alarm_rate={given!r} allows .* alarms per observation of {seconds} seconds.*less than 0.5"
    with pytest.raises(ValueError, match=message):
        parse_alarm_rate(given, seconds)


@pytest.mark.parametrize(
    ("interval", "seconds"),
    [("5min", 300.0), (300, 300.0), (np.int64(300), 300.0), (np.float32(0.5), 0.5), (timedelta(hours=1), 3600.0),
     (np.timedelta64(2, "m"), 120.0), ("1h 30min", 5400.0)],
)  # fmt: skip
def test_intervals(interval, seconds):
    assert Fleet(1, interval=interval, **QUICK).interval == seconds


def test_sizes_where_incidents_are_counted():
    normal = sizes(0.01, window=2000, promise="incidents")
    assert (normal.window, normal.alpha_c, normal.final, normal.stand_in) == (2000, 0.01, 1000, 20)
    assert (normal.min_calibration, normal.block, normal.blocks) == (200, 20, 100 * 6 / 20)
    rare = sizes(1e-6, window=1000, promise="incidents")
    assert (rare.window, rare.block, rare.blocks) == (1000, 10_000, 600)
    weekly = sizes(1e-4, window=1000, promise="incidents")
    assert (weekly.block, weekly.blocks) == (100, 10_000 * 6 / 100)
    often = sizes(0.4, window=250, promise="incidents")
    assert (often.block, often.blocks, often.stand_in) == (20, 6, 6)


def test_sizes_where_observations_are_counted():
    normal = sizes(0.01, window=2000, promise="observations")
    assert (normal.final, normal.min_calibration) == (2000, 200)
    rare = sizes(5e-5, window=2000, promise="observations")
    assert (rare.final, rare.min_calibration) == (MOST_LAGS, 20_000)


@pytest.mark.parametrize("rate", np.geomspace(LEAST_RATE, 0.499, 60))
def test_sizes_let_every_rate_be_told(rate):
    """Blocks and windows can reach under the rate, and the sizes are ones that the scorers accept."""
    for window in (250, 2000, MOST_LAGS):
        size = sizes(float(rate), window=window, promise="observations")
        assert 1 / MOST_LAGS < size.alpha_c < 1
        assert np.ceil(1 / size.alpha_c - 1) < size.window <= MOST_LAGS
        assert 1 / (1 + size.min_calibration) < rate
        assert size.min_calibration < size.final <= MOST_LAGS
        size = sizes(float(rate), window=window, promise="incidents")
        rarest = 1 / (1 + size.blocks) / size.block
        assert rarest < min(rate / 3, 0.25 / size.block)
        bound = np.log(rate / rarest) / 0.1
        assert most_beyond(size, float(rate), early=False) >= bound
        assert most_beyond(size, float(rate), early=True) >= bound + np.log(100) / 0.1


def test_too_small_a_rate_is_refused_with_the_reason():
    message = r"alarm_rate must be at least 1.53e-05 with promise='observations'.*no more than 65536 past.*got 1e-06"
    with pytest.raises(ValueError, match=message):
        Detector(alarm_rate=1e-6, promise="observations", **QUICK)
    with pytest.raises(ValueError, match=r"alarm_rate must be at least .*got 3.86e-07.*count incidents"):
        Detector(alarm_rate="1/month", interval="1s", promise="observations", **QUICK)
    assert Detector(alarm_rate="1/month", interval="1s", **QUICK).alarm_rate == pytest.approx(3.86e-7, rel=1e-3)


BAD = {
    "signals": [0, -1, 1.5, True, "name", [], ["a", "a"], ["a", 1], 2**40],
    "features": [0, 2.0, False, "name", [], ["a", "a"], [None]],
    "alarm_rate": [0, 0.5, -1, "often", float("nan"), True],
    "interval": [0, -5, "soon", float("nan"), True, [], "0s", 1j, np.timedelta64("NaT")],
    "forecaster": ["nonsense", 5, LastValue, ["last-value"]],
    "forecaster_options": [{"colour": 1}, {"period": 24}],
    "promise": ["other", None, 5, "Incidents"],
    "preset": ["other", None, 5, "Light"],
    "views": ["other", "", "error,other", "error,error", [], ["levels"], 5, ["error", 5], True],
    "zone": ["Berlin", "", 5, "Europe", "../UTC"],
    "holidays": ["Germany", 5, "2026-02-30", ["2026-12-24", 5]],
    "nonconformity": ["other", "signed", None, 5, "Absolute", ["high"]],
    "scaled": [1, None, "yes", True],
    "accept_after": [-1, 1.5, None, "soon", True],
    "season": [-1, 0, 1, 1.5, "soon", "", True, [], 10**6],
    "early": [1, None, "yes"],
    "refresh": [0, -1, 1.5, None, "3", True, 2000],
    "window": [0, 249, 2**16 + 1, 300.0, "300", True],
    "learning_rate": [0, -1, 0.2, "x", float("nan"), True],
    "horizons": [0, 15, 1.5, "3", True],
    "alpha_c": [0, 1, 0.01, "x", True],
    "batch": [0, 10, "3", True],
    "optimizer": ["newton", "adam", 5],
    "prior": ["other", "extend", 5],
    "merge_horizons": ["other", "median", 5],
    "merge_features": ["other", "fisher", 5],
    "gap": [-1, 1.5, None, "3", True],
    "budget": [0, 1.0, -1, "often", True, "5/fortnight"],
    "peers": ["yes", 2, None],
    "every": [0, -5, "soon", True, [], "0s"],
    "aggregate": ["median", None, 5, "Mean"],
    "min_deviation": [-1, None, "x", float("nan"), float("inf"), False, [0.0, 0.0]],
    "min_relative_deviation": [-0.5, None, "x", float("nan"), float("inf"), True],
    "min_duration": [0, -1, 1.5, None, "3", True],
    "threads": [0, -1, 1.5, None, "3", True, 2000],
}
# Those that any forecaster will do for.
GOOD = {
    "signals": [1, 2, np.int64(2), ["a", "b"], ("a",), None],
    "features": [1, 2, ["a", "b"], ("a",), None],
    "alarm_rate": [0.1, "0.1", np.float64(0.1), Fraction(1, 10)],
    "interval": [None, 5, "5s"],
    "forecaster": [None, "last-value", LastValue(), MovingMean()],
    "forecaster_options": [None, {}],
    "promise": ["incidents", "observations"],
    "preset": list(PRESETS),
    "views": [None, "error", "error, movement", ["movement"], ("shape", "movement"), available_views()],
    "zone": [None, "Europe/Berlin", "UTC"],
    "holidays": [None, [], "2026-12-24", ["2026-12-24", date(2026, 12, 31)]],
    "nonconformity": list(NONCONFORMITIES),
    "scaled": [False, np.False_],
    "accept_after": [0, 10**6, "20", "6h"],
    "season": ["auto", "none", None, "1d", 24, "24, 168", [24, 168]],
    "budget": [None, 0.1, "5/day"],
    "peers": [False],
    "every": [None, "1min", 60, timedelta(minutes=1)],
    "aggregate": ["mean", "last", "max", "sum", "count"],
    "early": [True, False, np.False_],
    "refresh": [1, 9],
    "window": [None, 250, 1000],
    "learning_rate": [None, 1e-6, 0.01, 0.1],
    **{name: [None] for name in sorted(PAPER_OPTIONS.keys() - {"window", "learning_rate"})},
    "gap": [0, 10**6],
    "min_deviation": [0, 0.0, 3, 1e300],
    "min_relative_deviation": [0, 0.0, 3, np.float32(0.5)],
    "min_duration": [1, 100],
    "threads": [1, 3],
}


def test_every_parameter_is_on_the_lists():
    names = set(inspect.signature(Fleet.__init__).parameters) - {"self"}
    assert set(BAD) == names
    assert set(GOOD) == names


def made(name, value):
    arguments = {"signals": 1, **QUICK, name: value}
    return Fleet(**arguments)


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in BAD for value in BAD[name]])
def test_bad_arguments_are_named_with_what_was_given(name, value):
    with pytest.raises((TypeError, ValueError)) as caught:
        made(name, value)
    message = str(caught.value)
    assert re.search(rf"\b{name}\b|forecaster 'last-value' does not take", message), message
    assert repr(value) in message or str(value) in message, message
    if name not in ("signals", "threads", "budget", "peers"):
        with pytest.raises(type(caught.value)) as again:
            Detector(**{**QUICK, name: value})
        assert str(again.value) == message


@pytest.mark.parametrize("name", GOOD)
def test_good_arguments_are_taken(name):
    for value in GOOD[name]:
        made(name, value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: Detector(colour="red"),
            r"Detector\(\) got an unexpected argument 'colour'; accepted: features, al",
        ),
        (
            lambda: Detector(alarmrate=0.1),
            r"Detector\(\) got an unexpected argument 'alarmrate'; .* mean 'alarm_rate'\?",
        ),
        (lambda: Detector(signals=3), r"Detector\(\) got an unexpected argument 'signals'"),
        (
            lambda: Detector(1, 0.01),
            r"Detector\(\) .*too many positional arguments; the call is Detector\(features, and",
        ),
        (lambda: Detector(1, features=2), r"Detector\(\) .*multiple values for argument 'features'"),
        (lambda: Fleet(2, colour="red"), r"Fleet\(\) got an unexpected argument 'colour'; accepted: signals, fe"),
        (
            lambda: Fleet(2, 1, 0.01),
            r"Fleet\(\) .*too many positional arguments; the call is Fleet\(signals, features, and",
        ),
    ],
)
def test_unknown_arguments_are_refused_in_the_name_of_what_was_called(call, message):
    with pytest.raises(TypeError, match=message) as caught:
        call()
    assert "__init__" not in str(caught.value)
    assert "Settings" not in str(caught.value)


def test_a_fleet_without_signals_waits_for_a_frame():
    fleet = Fleet(**QUICK)
    with pytest.raises(ValueError, match="signals must be given, as a number or as names, or come with a frame"):
        fleet.update([1.0])
    with pytest.raises(AttributeError, match="colour"):
        _ = fleet.colour


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scaled": True}, r"scaled=True needs a forecaster with quantiles, got LastValue\(\)"),
        (
            {"scaled": True, "forecaster": (MovingMean(), LastValue())},
            r"needs a forecaster with quantiles, got LastValue",
        ),
        ({"scaled": True, "forecaster": None}, "scaled=True needs a forecaster, got forecaster=None"),
        ({"min_deviation": 2.0, "forecaster": None}, "min_deviation=2.0 needs a forecaster, got forecaster=None"),
        ({"min_relative_deviation": 0.1, "forecaster": None}, "min_relative_deviation=0.1 needs a forecaster"),
        ({"views": "error", "forecaster": None}, r"views=\('error',\) needs a forecaster, got forecaster=None"),
        (
            {"views": "error,movement", "nonconformity": "high"},
            "'high' needs views that tell high from low, got movement",
        ),
        ({"views": "shape", "nonconformity": "low"}, "'low' needs views that tell high from low, got shape"),
        ({"nonconformity": "low", "forecaster": None}, "nonconformity must keep its default with forecaster=None"),
        ({"forecaster": LastValue(), "forecaster_options": {"a": 1}}, "forecaster_options=.* need the name"),
        ({"forecaster": None, "forecaster_options": {"a": 1}}, "forecaster_options=.* need the name"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Detector(**{**QUICK, **settings})


def test_arguments_that_go_together():
    Detector(forecaster=MovingMean(), scaled=True, views="error", nonconformity="low", min_deviation=1.0)
    Detector(forecaster=None, nonconformity="high", preset="light", refresh=3)


def test_names():
    assert Fleet(1, **QUICK).names == ["signal"]
    assert Fleet(2, 3, **QUICK).names == ["signal 1", "signal 2"]
    assert Fleet(2, 3, **QUICK).features == ["feature 1", "feature 2", "feature 3"]
    assert Fleet(("a", "b"), ["x"], **QUICK).names == ["a", "b"]
    assert Detector(("x", "y"), **QUICK).features == ["x", "y"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: f.update([1.0]), r"values must have shape \(T, 2, 2\).*got shape \(1, 1\)"),
        (lambda f: f.update(np.zeros((3, 2))), r"values must have shape \(T, 2, 2\).*got shape \(1, 3, 2\)"),
        (lambda f: f.run_arrays(np.zeros((4, 2))), r"values must have shape \(T, 2, 2\).*got shape \(4, 2\)"),
        (lambda f: f.run_arrays(np.zeros((4, 2, 3))), r"values must have shape \(T, 2, 2\).*got shape \(4, 2, 3\)"),
        (lambda f: f.update([["a", "b"], ["c", "d"]]), "values must be numbers, got"),
        (lambda f: f.update([[1, 2], [3, 10**400]]), "values must be numbers, got"),
        (lambda f: f.update(np.zeros((2, 2)), rows=[0, 0]), r"rows must be distinct indices.*0 to 1, got \[0, 0\]"),
        (lambda f: f.update(np.zeros((1, 2)), rows=[2]), r"rows must be distinct indices from 0 to 1, got \[2\]"),
        (lambda f: f.update(np.zeros((1, 2)), rows=[-1]), r"rows must be distinct indices from 0 to 1, got \[-1\]"),
        (lambda f: f.update(np.zeros((1, 2)), rows=[True]), r"rows must be a sequence of indices"),
        (lambda f: f.update(np.zeros((1, 2)), rows=[0.0]), r"rows must be a sequence of indices"),
        (lambda f: f.update(np.zeros((1, 2)), rows=0), r"rows must be a sequence of indices.*got 0"),
        (lambda f: f.update(np.zeros((2, 2)), rows=[0]), r"values must have shape \(T, 1, 2\)"),
        (lambda f: f.update(np.zeros((2, 2)), times=[1]), r"times must have shape \(1, 2\), got \(1, 1\)"),
        (lambda f: f.run_arrays(np.zeros((3, 2, 2)), times=np.zeros(3)), r"times must have shape \(3, 2\), got \(3,\)"),
        (lambda f: f.audit(0, level=1.0), "level must be a number > 0 and < 1, got 1.0"),
    ],
)  # fmt: skip
def test_bad_calls_of_a_fleet_are_named_and_change_nothing(call, message):
    fleet = Fleet(2, 2, **SMALL, **QUICK)
    fleet.run_arrays(np.zeros((5, 2, 2)))
    with pytest.raises((TypeError, ValueError), match=message):
        call(fleet)
    assert fleet.pipeline.seen.tolist() == [5, 5]


@pytest.mark.parametrize(
    ("features", "value", "message"),
    [
        (1, [1.0, 2.0], r"value must be 1 number, one per feature, got \[1.0, 2.0\]"),
        (2, 1.0, "value must be 2 numbers, one per feature, got 1.0"),
        (2, [[1.0, 2.0]], "value must be 2 numbers, one per feature"),
        (2, None, "value must be 2 numbers, one per feature, got None"),
        (1, "5", "value must be numbers, got '5'"),
        (1, "abc", "value must be numbers, got 'abc'"),
        (1, 10**400, "value must be numbers, got 1000.*too large"),
        (1, 1j, "value must be numbers"),
        (1, object(), "value must be numbers"),
        (2, [1.0, "x"], "value must be numbers"),
        (2, [[1.0], [2.0, 3.0]], "value must be numbers"),
    ],
)
def test_bad_values_are_refused_and_change_nothing(features, value, message):
    detector = Detector(features, **SMALL, **QUICK)
    with pytest.raises((TypeError, ValueError), match=message):
        detector.update(value, time=5.0)
    assert detector.observations == 0
    detector.update([1.0] * features, time=1.0)


@pytest.mark.parametrize("value", [1, 1.0, np.float32(1), np.array(1.0), np.array([1.0]), [1], (1,), True, Fraction(1)])
def test_every_kind_of_number_is_taken(value):
    assert Detector(**SMALL, **QUICK).update(value).value == 1.0


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), -np.inf, [None], np.ma.masked, np.array(np.nan)])
def test_every_kind_of_missing_value_is_taken(value):
    verdict = Detector(**SMALL, **QUICK).update(value)
    assert np.isnan(verdict.value)
    assert np.isnan(verdict.p)
    assert not verdict.alarm


@pytest.mark.parametrize(
    ("features", "values", "shape"), [(1, np.zeros((3, 2)), "(T, 1)"), (2, np.zeros(3), "(T, 2)"), (1, 5.0, "(T, 1)")]
)
def test_histories_of_the_wrong_shape_are_refused(features, values, shape):
    with pytest.raises(ValueError, match=re.escape(f"values must have shape {shape}")):
        Detector(features, **SMALL, **QUICK).run(values)


def frame_of(rows):
    return pl.DataFrame({"value": np.arange(float(rows))})


def test_too_short_a_signal_warns():
    detector = Detector(alarm_rate=0.01, **QUICK)
    needed = detector.warm_up
    assert needed == 1 + 50
    with pytest.warns(ResolutionWarning, match=rf"signal 'signal' has 20 observations.*need {needed} before"):
        detector.detect(frame_of(20))
    with pytest.warns(ResolutionWarning, match=f"has {needed - 1} observations"):
        detector.detect(frame_of(needed - 1 - 20))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        detector.detect(frame_of(1))


@pytest.mark.slow
@pytest.mark.parametrize("promise", ["incidents", "observations"])
@pytest.mark.parametrize("features", [1, 2])
@pytest.mark.parametrize("forecaster", ["last-value", MovingMean(), None], ids=str)
def test_warm_up_is_enough(promise, features, forecaster):
    """Of a signal with nothing missing, all verdicts after warm-up say so, and the first do not."""
    detector = Detector(features, window=250, alarm_rate=0.01, forecaster=forecaster, promise=promise)
    values = np.random.default_rng(0).normal(size=(detector.warm_up + 50, features))
    warm = detector.run(values).warm
    assert warm[detector.warm_up :].all()
    assert not warm[: detector.warm_up - 3].any()


def test_guarantees_say_what_is_promised():
    incidents = Detector(**QUICK).guarantee
    assert re.match(r"long-run, for any sequence: incidents <= alarm_rate \* observations \+ \d+; closed", incidents)
    assert "; estimated: how rare" in incidents
    assert "estimated" not in Detector(early=False, **QUICK).guarantee
    assert Detector(promise="observations", **QUICK).guarantee.startswith("closed loop: in the long run p")


def test_a_value_is_checked_once(monkeypatch):
    detector = Detector(2, **QUICK)
    detector.update([1.0, 2.0])
    checked, numbers = [], checks.numbers
    monkeypatch.setattr(checks, "numbers", lambda name, value: checked.append(name) or numbers(name, value))
    detector.update([1.0, None])
    # Once by the detector, and once by each forecaster, which may come from elsewhere.
    assert checked == ["value", *["values"] * len(detector.fleet.pipeline.forecasters)]
