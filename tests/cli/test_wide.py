"""Files with several value columns: each is a signal of its own, and their relations are one more."""

import csv
import json
import math

import numpy as np
import pytest
from scipy.stats import poisson

from tests.cases import full
from tests.cli.calling import invoke, words
from tocsin import Detector
from tocsin.cli.wide import separate
from tocsin.constants import constants
from tocsin.data import Signal
from tocsin.data.tables import Columns
from tocsin.detection import Incident, Result, detect_signals
from tocsin.detection.batch import share_alarm_rate
from tocsin.detection.incidents.audit import Audit, audit_together, rate_bounds
from tocsin.detection.settings.alarm_rate import most_beyond

USUAL = {
    "views": None, "forecaster": "auto", "forecaster_options": None, "preset": "light", "promise": "incidents",
    "alarm_rate": "0.01", "nonconformity": "absolute",
}  # fmt: skip


def plant(features=("flow", "oil", "heat"), rows=4, name="plant", seed=0):
    values = np.random.default_rng(seed).normal(size=(rows, len(features)))
    return Signal(name, tuple(features), None, values, np.arange(rows), None, ())


def watched(features=("flow", "oil", "heat"), id=None, *, peers=False, **settings):  # noqa: A002
    return separate(Columns(None, tuple(features), id), {**USUAL, **settings}, peers=peers)


def test_each_column_is_a_signal_and_their_relations_are_one_more():
    columns, signal = watched(), plant()
    *apart, relations = columns.split(signal)
    assert columns.parts == 4
    assert [one.name for one in apart] == ["flow", "oil", "heat"] == [one.features[0] for one in apart]
    np.testing.assert_array_equal(np.hstack([one.values for one in apart]), signal.values)
    assert columns.settings_of(apart[0]) == USUAL
    assert relations.name == "relations"
    assert columns.relates(relations)
    assert not columns.relates(apart[1])
    assert columns.settings_of(relations)["views"] == ["relation"]
    np.testing.assert_array_equal(relations.values, signal.values)


def test_names_tell_ids_and_a_column_with_the_name_of_the_relations():
    columns, signal = watched(("relations", "x"), id="pump"), plant(("relations", "x"), name="p1")
    assert [one.name for one in columns.split(signal)] == ["p1/relations", "p1/x", "p1/all relations"]


@pytest.mark.parametrize(
    "given",
    [{"features": ("flow",)}, {"views": "relation"}, {"preset": "paper"}, {"promise": "observations"},
     {"peers": True, "id": "pump"}],
)  # fmt: skip
def test_what_stays_one_signal(given):
    assert watched(**given) is None


@pytest.mark.parametrize("given", [{"views": "error, shape"}, {"forecaster": None}, {"peers": True}])
def test_relations_are_left_out_where_nobody_asks_for_them(given):
    columns = watched(**given)
    assert [one.name for one in columns.split(plant())] == ["flow", "oil", "heat"]
    assert columns.parts == 3


def proposed(first, period, last=None):
    last = first if last is None else last
    return Incident("s", first, last, first, first, last, 1, 0.01, 3.0, period, None, None, None, 0.0)


def result(incidents, rows=1000, rate=0.01):
    audit = Audit(rate, rows, len(incidents), 1.0, 0.99, 0.0, 1.0)
    return Result(plant(("x",), 0), rows, incidents, audit=audit)


def told(results):
    return [[one.first for one in result.incident_list] for result in share_alarm_rate(results)]


def test_an_incident_is_told_if_it_is_rare_for_all_signals_together():
    """Alone a signal may have one in 100 observations; of two, one in 200 each."""
    both = [result([proposed(10, 150), proposed(20, 250)]), result([proposed(30, 199), proposed(40, 300)])]
    assert told(both) == [[20], [40]]
    alone = result([proposed(10, 101), proposed(700, 150)])
    assert told([alone]) == [[10, 700]]


def test_each_that_is_told_raises_the_bar_for_the_next_and_time_lowers_it():
    close = [proposed(10 + k, 230.0) for k in range(4)]
    assert told([result(close), result([])]) == [[10, 11], []]  # 200 exp(0.1 k) for the k-th, less a little for time
    apart = [proposed(10 + 200 * k, 230.0) for k in range(4)]
    assert told([result(apart), result([])]) == [[10, 210, 410, 610], []]


def test_no_sequence_of_proposals_exceeds_the_alarm_rate_by_more_than_a_constant():
    """However many there are, and however rare each says it is: the bound is that of a single signal."""
    sizes = Detector(alarm_rate=0.01).fleet.settings.sizes
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rarest = 1 / (0.01 * math.exp(-constants().tightening * (most_beyond(sizes, 0.01, early=True) - 1)))
        found = [
            [proposed(int(at), float(period)) for at, period in zip(
                np.sort(rng.integers(0, 2000, 400)), np.exp(rng.uniform(3, math.log(rarest), 400)), strict=True
            )]
            for _ in range(3)
        ]  # fmt: skip
        count = sum(map(len, told([result(one, 2000) for one in found])))
        assert count <= 0.01 * 2000 + most_beyond(sizes, 0.01, early=True)
        assert count > 0.01 * 2000  # and it is needed


def test_what_is_told_is_what_is_audited():
    shared = share_alarm_rate([result([proposed(10, 150)]), result([proposed(500, 1000)]), result([])])
    together = audit_together([one.audit for one in shared])
    assert (together.alarms, together.observations) == (1, 3000)
    assert together.promised * together.observations == pytest.approx(10)
    assert together.ratio == pytest.approx(0.1)
    single = share_alarm_rate([result([proposed(10, 150)])])[0].audit
    assert (single.low, single.high) == rate_bounds(1, 1000, 0.01, 0.995)


def test_alarms_that_are_not_told_are_not_drawn():
    signal = plant(("x",), 1200)
    signal.values[[800, 1000]] = [[40.0], [60.0]]
    (alone,) = detect_signals([signal], {"preset": "light", "views": "error"}, keep=True)
    assert alone.alarm[[800, 1000]].all()
    next(one for one in alone.incident_list if one.first <= 800 <= one.last).return_period = 101.0
    (one, _) = share_alarm_rate([alone, result([])])
    kept = np.zeros(1200, dtype=bool)
    for incident in one.incident_list:
        kept[incident.first : incident.last + 1] = True
    assert one.alarm[1000]
    assert not one.alarm[800]
    np.testing.assert_array_equal(one.alarm, alone.alarm & kept)


def sensors(path, rows=1300, broken=(1000, 1100)):
    """Five that follow a load, one of which stops to: its values stay usual."""
    rng = np.random.default_rng(0)
    load = rng.normal(size=rows)
    values = load[:, np.newaxis] + 0.2 * rng.normal(size=(rows, 5))
    values[slice(*broken), 1] = rng.normal(size=broken[1] - broken[0])
    np.savetxt(
        path, values, delimiter=",", header="inlet [°C],oil [°C],flow,outlet,power", comments="", encoding="utf-8"
    )
    return path


QUICK = ("--separate", "--preset", "light", "--views", "level,relation", "--alarm-rate", "0.003")


def test_a_broken_relation_is_found_and_the_column_is_named(tmp_path):
    found, verdicts = tmp_path / "found.jsonl", tmp_path / "v.csv"
    path = sensors(tmp_path / "sensors.csv")
    done = invoke("detect", path, *QUICK, "--incidents", found, "-o", verdicts, "--report", tmp_path / "page.html")
    assert done.exit_code == 0, done.output
    assert "5 signals" in done.stderr
    table, _, rest = done.stdout.partition("what was seen")
    assert "of 6 signals with incidents" in table
    assert "relations" in table
    assert "oil" in rest
    assert "what the other 4 features say" in words(done)
    incidents = [json.loads(line) for line in found.read_text().splitlines()]
    worst = max(incidents, key=lambda one: one["severity"])
    assert (worst["signal"], worst["view"], worst["features"].split(", ")[0]) == ("relations", "relation", "oil [°C]")
    assert 1000 <= worst["peak"] < 1100
    assert (worst["direction"], worst["deviation"]) == ("", None)  # there was no forecast to be above or below
    with verdicts.open(encoding="utf-8") as opened:
        rows = list(csv.DictReader(opened))
    assert [row["signal"] for row in rows[::1300]] == ["inlet [°C]", "oil [°C]", "flow", "outlet", "power", "relations"]
    assert (rows[-1]["value"], rows[-1]["forecast"]) == ("", "")
    assert float(rows[-1]["p"]) <= 1


def test_all_parts_of_a_file_count_in_a_budget(tmp_path):
    path = sensors(tmp_path / "sensors.csv")
    done = invoke("detect", path, *QUICK[:-2], "--budget", "0.1")
    assert done.exit_code == 0, done.output
    assert "7,800 observations of 6 signals" in words(done)
    assert "relations" in done.stdout


def test_features_of_one_signal_have_a_table_of_their_own(tmp_path):
    done = invoke("detect", sensors(tmp_path / "sensors.csv"), "--joint", *QUICK[1:])
    assert done.exit_code == 0, done.output
    table, _, rest = done.stdout.partition("what was seen")
    assert "of 5 features with incidents" in table
    assert "oil" in table
    assert "oil" in rest


def test_what_is_wrong_with_all_columns_is_told_once(tmp_path):
    done = invoke("detect", sensors(tmp_path / "sensors.csv"), "--separate", "--alarm-rate", "1/day")
    assert done.exit_code == 1
    assert done.stderr.count("set the sampling interval too") == 1


@pytest.mark.parametrize(
    ("column", "said"),
    [(lambda t: "text", "column left out"), full(lambda t: "", "column left out"), full(lambda t: "1.5", ""),
     (lambda t: "" if t > 3 else str(t), "'odd' has no value at 100% of its times")],
)  # fmt: skip
def test_a_column_without_use_does_not_stop_the_others(column, said, tmp_path):
    path = sensors(tmp_path / "sensors.csv")
    head, *rows = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([f"{head},odd", *(f"{row},{column(t)}" for t, row in enumerate(rows))]), encoding="utf-8")
    done = invoke("detect", path, *QUICK)
    assert done.exit_code == 0, done.output
    assert said in words(done)
    assert "relations" in done.stdout


@pytest.mark.full
@pytest.mark.parametrize("dependent", [False, True])
def test_columns_together_keep_the_alarm_rate(dependent):
    """Noise in six columns, 5 files: as many incidents as one signal may have, in a Poisson band of 99.9%."""
    count = expected = 0
    columns = watched(tuple("abcdef"))
    for seed in range(5):
        signal = plant("abcdef", 3000, seed=seed)
        if dependent:
            signal.values[:] = signal.values[:, :1] + 0.5 * signal.values
        shared = share_alarm_rate(list(detect_signals(columns.split(signal), columns.settings_of)))
        count += sum(len(one.incident_list) for one in shared)
        expected += sum(one.audit.promised * one.audit.observations for one in shared)
    low, high = poisson.interval(0.999, expected)
    assert low <= count <= high
