"""Settings are declared once: everything else reads the declaration."""

import inspect
import re
import typing
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
import pytest

import tocsin
from tests.detection.helpers import LAST, MovingMean, hard_values, same_verdicts
from tests.fuzzing import hostile_settings
from tocsin import checks
from tocsin.detection import Detector, DetectorSettings, Fleet, memory_bytes, working_bytes
from tocsin.detection.settings.declaration import declared, setting
from tocsin.detection.settings.history_settings import FleetSettings, HistorySettings

SOURCE = Path(tocsin.__file__).parent


@dataclass(frozen=True)
class Sample:
    """Every kind of setting."""

    truth: bool = setting(True, "a truth")
    count: int = setting(3, "a count", least=1, most=5)
    share: float = setting(0.5, "a share", least=0, below=1)
    limit: float | None = setting(None, "a limit", above=0, unset="no limit")
    word: str = setting("a", "a word", choices=("a", "b"))
    text: str = setting("x", "any text")
    words: tuple[str, ...] = setting(("a",), "some words", choices=("a", "b", "c"))
    options: Mapping[str, int] | None = setting(None, "options")
    union: float | str = setting(1.0, "a number or a text", check=lambda name, value: value, accepts="anything")

    def __post_init__(self):
        for one in declared(type(self)).values():
            object.__setattr__(self, one.name, one.checked(getattr(self, one.name)))


@pytest.mark.parametrize(
    ("name", "given", "kept"),
    [
        ("truth", np.False_, False),
        ("count", np.int64(5), 5),
        ("share", 0, 0.0),
        ("limit", None, None),
        ("limit", np.float32(0.5), 0.5),
        ("word", "b", "b"),
        ("text", "", ""),
        ("words", ["c", "a"], ("c", "a")),
        ("words", [], ()),
        ("options", {"a": 1}, {"a": 1}),
        ("options", None, None),
        ("union", "many", "many"),
    ],
)
def test_what_is_taken_has_its_proper_type(name, given, kept):
    value = getattr(Sample(**{name: given}), name)
    assert value == kept
    assert type(value) is type(kept)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("truth", 1, "truth must be True or False, got 1"),
        ("count", 6, "count must be an integer from 1 to 5, got 6"),
        ("count", None, "count must be an integer from 1 to 5, got None"),
        ("share", 1, "share must be a number >= 0 and < 1, got 1"),
        ("share", float("nan"), "share must be a number >= 0 and < 1, got nan"),
        ("limit", 0, "limit must be a number > 0, got 0"),
        ("limit", float("inf"), "limit must be a number > 0, got inf"),
        ("word", "c", "word must be one of 'a', 'b', got 'c'"),
        ("text", 5, "text must be a text, got 5"),
        ("words", "ab", "words must be a list of distinct names from 'a', 'b', 'c', got 'ab'"),
        ("words", ["a", "a"], r"words must be a list of distinct names from .* got \['a', 'a'\]"),
        ("words", ["d"], r"words must be a list .* got \['d'\]"),
        ("options", 5, "options must be a mapping of names to values, got 5"),
    ],
)
def test_what_is_refused_is_named_with_what_is_accepted(name, given, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}$"):
        Sample(**{name: given})


def test_what_is_accepted_is_said_in_words():
    accepted = {name: one.accepted for name, one in declared(Sample).items()}
    assert accepted["truth"] == "True, False"
    assert accepted["count"] == "1 to 5"
    assert accepted["share"] == ">= 0 and < 1"
    assert accepted["limit"] == "> 0"
    assert accepted["words"] == '"a", "b", "c"'
    assert accepted["union"] == "anything"


def test_a_type_without_a_check_is_refused():
    @dataclass
    class Wrong:
        union: float | str = setting(1.0, "a number or a text")

    with pytest.raises(TypeError, match="union must have a check of its own"):
        declared(Wrong)


def test_detectors_and_fleets_have_the_arguments_of_the_settings():
    wanted = list(inspect.signature(HistorySettings).parameters.values())
    assert list(inspect.signature(Detector).parameters.values()) == wanted
    signals, *rest = inspect.signature(Fleet).parameters.values()
    assert signals.name == "signals"
    assert rest == [
        *wanted,
        *(one for one in inspect.signature(FleetSettings).parameters.values() if one not in wanted),
    ]
    assert [one.name for one in rest[len(wanted) :]] == ["budget", "peers"]
    assert [one.name for one in wanted] == [*(one.name for one in fields(DetectorSettings)), "every", "aggregate"]
    assert [one.name for one in wanted if one.kind is not one.KEYWORD_ONLY] == ["features"]
    assert set(typing.get_type_hints(Fleet.__init__)) >= set(declared(DetectorSettings))


@pytest.mark.parametrize("kind", [Detector, Fleet, DetectorSettings])
def test_docstrings_list_every_setting_with_its_help(kind):
    text = " ".join(kind.__doc__.split())
    assert "{settings}" not in text
    for one in declared(DetectorSettings).values():
        assert f"{one.name} : {one.help}." in text, one.name


def test_made_of_ready_settings_they_are_the_same():
    settings = DetectorSettings(**LAST, views="error,movement", gap=3)
    values = hard_values(0, 300)
    other = Detector(**LAST, views=("error", "movement"), gap=3)
    same_verdicts(Detector.of(settings).run(values).verdicts, other.run(values).verdicts)
    fleet = Fleet.of(["a", "b"], settings)
    assert (fleet.names, fleet.settings) == (["a", "b"], settings)
    assert fleet.forecaster is settings.chosen_forecaster


def test_settings_can_be_changed_one_by_one():
    settings = DetectorSettings(["a", "b"], alarm_rate="1/day", interval="5min", window=300)
    assert settings == DetectorSettings(("a", "b"), alarm_rate="1/day", interval=300.0, window=300)
    other = replace(settings, interval="10min")
    assert other.rate == 2 * settings.rate
    with pytest.raises(ValueError, match="window must be an integer from 250 to 65536, got 3"):
        replace(settings, window=3)


def test_a_preset_chooses_what_is_not_chosen():
    full, light = DetectorSettings(), DetectorSettings(preset="light")
    assert [view.name for view in full.chosen_views] == ["error", "shape", "movement", "level"]
    assert [view.name for view in light.chosen_views] == ["error", "shape", "movement", "level"]
    assert (full.forecaster_name, light.forecaster_name) == ("embedded", "autoregression")
    assert (full.sizes.window, light.sizes.window) == (2000, 2000)
    assert [len(one.chosen_forecasters) for one in (full, light)] == [2, 1]
    own = DetectorSettings(preset="light", forecaster="last-value", views="error", window=300)
    assert [view.name for view in own.chosen_views] == ["error"]
    assert (own.forecaster_name, own.sizes.window) == ("last-value", 300)
    assert [view.name for view in DetectorSettings(nonconformity="low").chosen_views] == ["error", "level"]


def test_checking_makes_no_detector(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a detector was made")

    monkeypatch.setattr("tocsin.detection.evidence.pipeline.Pipeline.__init__", refuse)
    DetectorSettings.check({"alarm_rate": 0.001})
    DetectorSettings.check({"alarm_rate": "1/day"}, interval_known=False)
    DetectorSettings.check({"forecaster": "chronos", "forecaster_options": {"model": "somewhere"}})
    for given, message in (
        ({"alarm_rate": "1/day"}, "set the sampling interval"),
        ({"forecaster": "nonsense"}, "forecaster must be one of .*'nonsense'"),
        ({"refresh": 19}, "refresh=19 needs forecasts of 33 steps with these views, but .* supports 32 at most"),
        ({"forecaster": "last-value", "scaled": True}, "scaled=True needs a forecaster with quantiles"),
    ):
        with pytest.raises(ValueError, match=message):
            DetectorSettings.check(given)
    with pytest.raises(ValueError, match=r"alarm_rate must be .*'often'"):
        DetectorSettings.check({"alarm_rate": "often"}, interval_known=False)


def test_a_forecaster_is_made_when_it_is_asked_for():
    settings = DetectorSettings(forecaster="chronos", forecaster_options={"model": "nowhere"})
    assert settings.loads_a_model
    own = MovingMean()
    assert DetectorSettings(forecaster=own).chosen_forecaster is own
    assert DetectorSettings(forecaster=None).chosen_forecaster is None


def test_all_rows_of_a_fleet_take_the_short_way(monkeypatch):
    """A choice of rows has to be checked and copied; all of them need not be."""
    fleet, chosen = Fleet(3, **LAST), Fleet(3, **LAST)
    values = np.random.default_rng(0).normal(size=(400, 3))
    asked, check = [], checks.indices
    monkeypatch.setattr(
        checks, "indices", lambda name, *given, **named: asked.append(name) or check(name, *given, **named)
    )
    verdicts = fleet.run_arrays(values)
    fleet.update(values[0])
    assert "rows" not in asked
    same_verdicts(verdicts, chosen.run_arrays(values, rows=[0, 1, 2]))
    assert "rows" in asked


def test_rows_are_counted_and_their_incidents_forgotten():
    fleet = Fleet(2, **LAST, gap=50)
    fleet.run_arrays(np.random.default_rng(1).normal(size=(700, 2)))
    fleet.update([1e6], rows=[1])
    assert [fleet.observations(row) for row in (0, 1)] == [700, 701]
    assert fleet.open_incident(1) is not None
    others = fleet.incidents(0)
    fleet.forget_incidents(1)
    assert fleet.open_incident(1) is None
    assert fleet.incidents(1) == []
    assert fleet.incidents(0) == others
    assert fleet.memory_bytes == fleet.pipeline.nbytes // 2
    assert fleet.memory_bytes > Fleet(2, **LAST, views="error").memory_bytes + 4 * 12_000  # what the shape keeps
    for call in (fleet.observations, fleet.open_incident, fleet.forget_incidents):
        with pytest.raises(ValueError, match="row must be an integer from 0 to 1, got 2"):
            call(2)


def test_nobody_outside_looks_into_a_fleet():
    for path in SOURCE.rglob("*.py"):
        if path.parent != SOURCE / "detection":
            assert not re.search(r"fleet\.(pipeline|log|trail)\b", path.read_text()), path


def test_a_time_until_something_is_accepted_becomes_observations():
    assert DetectorSettings(accept_after="6h", interval="5min").accepted_after == 72
    assert DetectorSettings(accept_after="10s", interval="1min").accepted_after == 1
    assert DetectorSettings(accept_after="45").accepted_after == 45
    DetectorSettings.check({"accept_after": "6h"}, interval_known=False)
    with pytest.raises(ValueError, match=r"accept_after must be .*soon"):
        DetectorSettings.check({"accept_after": "soon"}, interval_known=False)
    with pytest.raises(ValueError, match="accept_after='6h' is a duration: set the sampling interval"):
        DetectorSettings(accept_after="6h")


def test_a_season_is_a_duration_or_a_number_of_observations():
    assert DetectorSettings().seasons is None
    assert DetectorSettings(season="none").seasons == DetectorSettings(season=None).seasons == ()
    assert DetectorSettings(season=24).seasons == DetectorSettings(season="24").seasons == (24,)
    assert DetectorSettings(season="1d, 1w", interval="5min").seasons == (288, 2016)
    assert DetectorSettings(season=["1d", 12], interval="1h").seasons == (24, 12)
    assert DetectorSettings(interval="1h").calendar_periods == (24, 168)
    assert DetectorSettings(interval="7min").calendar_periods == (1440,)  # a day is no whole number of these
    assert DetectorSettings().calendar_periods == DetectorSettings(interval="1w").calendar_periods == ()
    DetectorSettings.check({"season": "1d"}, interval_known=False)
    with pytest.raises(ValueError, match=r"season must be .*soon"):
        DetectorSettings.check({"season": "soon"}, interval_known=False)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"season": "1d"}, "season='1d' is a duration: set the sampling interval too, such as interval='5min'"),
        ({"season": "soon"}, r"season must be a number of observations or a duration: .*'1d'.*got 'soon'"),
        ({"season": 1}, r"season must be 2 to 24,576 observations long, got \(1,\), which is 1"),
        ({"season": "1w", "interval": "1s"}, "season must be 2 to 24,576 observations long, got .*1w.*604,800"),
        ({"season": 1.5}, "season must be an integer .*got 1.5"),
        ({"season": []}, r"season must name at least one period, or be 'none', got \[\]"),
    ],
)
def test_what_is_no_season_is_refused(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        DetectorSettings(**given)


@pytest.mark.slow
def test_what_is_accepted_of_hostile_settings_can_be_run():
    values = np.random.default_rng(1).normal(size=(40, 1, 1))
    times = (np.arange(40) * 60 * 10**9).view("datetime64[ns]")[:, np.newaxis]
    accepted = 0
    for given in hostile_settings():
        try:
            settings = DetectorSettings(**given)
            if memory_bytes(settings) + working_bytes(settings) > 64 * 2**20:
                continue
        except (OSError, TypeError, ValueError):
            continue
        Fleet.of(["a"], settings).run_arrays(values, times=times)
        accepted += 1
    assert accepted > 100
