"""What can be found in several signals: the median and the worst, in their unit or in sd of their own noise."""

import numpy as np
import pytest

from tests.evaluation.test_detectability import finding
from tocsin import Detector
from tocsin.evaluation import Detectability, detectable, median_and_worst
from tocsin.evaluation.detectability import SIZES


def signal(*within, scale=0.5, fault="shift", feature="temp", found=12, **more):
    """A signal that finds the faults from the smallest on within so many observations, None for too few cases."""
    sizes = [
        finding(size * scale, found if after is None else 30, after, fault)
        for size, after in zip(SIZES[fault], within, strict=True)
    ]
    shown = {"alarm_rate": "1/week", "oftener_rate": "7/week", "lasts": 200, "interval": 60.0, "unit": "°C"} | more
    return Detectability(findings=tuple(sizes), oftener=tuple(sizes), **shown)


def test_the_median_signal_and_the_worst_at_one_size():
    found = {
        "a": signal(None, 90, 9, 4, 2, 1),
        "b": signal(None, None, 20, 9, 4, 2),
        "c": signal(None, None, 65, 9, 4, 2),
    }
    shift = "at 1/week, in the median of 3 signals, a shift of 1 °C is found within 20 min in 27 of 30 cases"
    end = "; in the worst, c, within 65 min in 27 of 30 cases"
    assert median_and_worst(found) == [f"{shift} (95% interval 74% to 97%){end}"]
    found["c"] = signal(None, None, None, None, 4, 2)
    assert median_and_worst(found)[0].endswith("; in the worst, c, in only 12 of 30 cases")
    found["d"] = signal(None, None, None, 9, 4, 2)  # half of four is no majority
    assert "in the median of 4 signals, a shift of 1.5 °C is found within 9 min" in median_and_worst(found)[0]
    same = {name: signal(None, None, 20, 9, 4, 2) for name in "ab"}
    assert median_and_worst(same)[0].endswith("(95% interval 74% to 97%); no signal is worse")


def test_what_nobody_finds_is_about_the_largest():
    found = {name: signal(*[None] * 6, found=cases) for name, cases in (("a", 3), ("b", 9), ("c", 5))}
    shift = "a shift of 4 °C is found in only 5 of 30 cases (95% interval 7% to 34%); in the worst, a, in only 3 of 30"
    assert shift in median_and_worst(found)[0]
    # What is found only now and then, with a larger one missed, does not count.
    found = {name: signal(1, 1, 1, 1, 1, None) for name in "abc"}
    assert "a shift of 4 °C is found in only 12 of 30 cases" in median_and_worst(found)[0]


def test_sizes_are_in_the_unit_only_if_the_signals_share_it_and_their_scale():
    times = (None, None, 20, 9, 4, 2)

    def size_of(*signals):
        (said,) = median_and_worst({f"{number}": one for number, one in enumerate(signals)})
        return said.partition("a shift of ")[2].partition(" is found")[0]

    assert size_of(signal(*times), signal(*times, scale=0.55)) == "between 1 and 1.1 °C"
    assert size_of(signal(*times), signal(*times, scale=0.8)) == "2 sd of its own noise"
    assert size_of(signal(*times), signal(*times, unit="K")) == "2 sd of its own noise"
    assert size_of(signal(*times, unit=""), signal(*times, unit="")) == "1"


def test_a_feature_that_changes_in_one_signal_only():
    still = Detectability("1/week", (), "7/week", (), 200, 60.0)
    said = median_and_worst({"a": still, "b": signal(20, fault="stuck")})
    assert said == [
        "at 1/week, in b, a stuck sensor is found within 20 min in 27 of 30 cases (95% interval 74% to 97%)"
    ]


def test_other_faults_rates_and_intervals():
    stuck = {"a": signal(20, fault="stuck"), "b": signal(None, fault="stuck", unit="K")}
    assert "a stuck sensor is found in only 12 of 30" in median_and_worst(stuck)[0]
    noise = {name: signal(None, 9, 4, 2, fault="noise", scale=1, unit=name) for name in "ab"}
    assert "noise 2 times as large is found within 9 min" in median_and_worst(noise)[0]
    mixed = {"a": signal(20, fault="stuck"), "b": signal(20, fault="stuck", alarm_rate="1/day")}
    assert median_and_worst(mixed)[0].startswith("at each signal's alarm rate, in the median of 2 signals, a stuck")
    # Later in observations, but sooner by the clock.
    paced = {
        "a": signal(20, fault="stuck"),
        "b": signal(40, fault="stuck", interval=1.0),
        "c": signal(9, fault="stuck"),
    }
    assert median_and_worst(paced)[0].endswith("; in the worst, a, within 20 min in 27 of 30 cases")


@pytest.mark.slow
def test_one_signal_says_what_it_says_alone_and_features_are_named():
    values = np.random.default_rng(3).normal(size=(900, 2)) * (1, 5)
    made = {"forecaster": "last-value", "views": ["error"], "window": 250, "alarm_rate": 0.1}
    made |= {"promise": "observations", "gap": 3}
    found = {
        name: detectable(Detector(["flow [l]", "heat"], **made), rows, cases=3, lasts=20)
        for name, rows in (("a", values), ("b", values[::-1]))
    }
    assert median_and_worst({"a": found["a"]}) == found["a"].sentences
    said = median_and_worst(found)
    assert [one.partition(": ")[0] for one in said] == ["flow"] * len(SIZES) + ["heat"] * len(SIZES)
    assert "a shift of " in said[0]
    assert " l is found " in said[0]
