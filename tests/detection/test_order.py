"""Which signal of an event moved first: order, score and test, beside an obvious oracle, and how often it is wrong."""

import numpy as np
import pytest
from scipy.stats import binom, norm

from tests.cases import full
from tocsin.detection import EventSignal, moving_order
from tocsin.detection.order import BEFORE, FEWEST, STRETCHES

MINUTE = np.timedelta64(60, "s")
LENGTH, AT = 1200, 1000


def moved(name, rng, at, size=5.0, *, length=LENGTH, ramp=0, values=None):
    """A signal that moves at some observation, noticed at the first value after it that is beyond 3 sd."""
    values = rng.normal(size=length) if values is None else values.copy()
    values[at:] += size * (np.minimum(np.arange(length - at) / ramp, 1.0) if ramp else 1.0)
    severity = -np.log10(2) - norm.logsf(np.abs(values)) / np.log(10)
    start = at + int(np.argmax(np.abs(values[at:]) > 3))
    return EventSignal(name, np.arange(length), values, severity, start, min(start + 100, length - 1))


def event(seed, lead, count=3, **more):
    """The first signal moves `lead` observations before the others."""
    rng = np.random.default_rng(seed)
    sizes = rng.uniform(3, 8, count)
    return [moved(f"s{one}", rng, AT + (lead if one else 0), sizes[one], **more) for one in range(count)]


def p_of(signals, earliest, others):
    """The p-value stretch by stretch, one observation after the other; the first signal is the candidate."""
    oldest = max(earliest - BEFORE, 0)
    length = earliest - oldest
    stretch = min(max(others - earliest, length / STRETCHES), length / (2 * FEWEST))
    seen = max(
        severity
        for time, severity in zip(signals[0].times, signals[0].severity, strict=True)
        if others - stretch <= time < others
    )
    furthest, end = [], earliest
    while end - stretch >= oldest - 1e-6:
        inside = [(one.times >= end - stretch) & (one.times < end) for one in signals]
        furthest.append(max(one.severity[chosen].max() for one, chosen in zip(signals, inside, strict=True)))
        end -= stretch
    return (1 + sum(far >= seen for far in furthest)) / (1 + len(furthest))


@pytest.mark.parametrize("lead", [full(4), 10, full(60)])
def test_the_p_value_is_that_of_the_oracle(lead):
    for seed in range(20):
        signals = event(seed, lead)
        order = moving_order(signals[::-1])
        top, *others = order.movers
        if np.isnan(order.lead):
            assert min(one.earliest for one in others) <= top.latest
            continue
        theirs = min(one.earliest for one in others)
        by_name = {one.name: one for one in signals}
        assert order.lead == theirs - top.latest
        assert order.p == p_of([by_name[one.signal] for one in order.movers], top.earliest, theirs)


@pytest.mark.parametrize("ramp", [0, 60])
def test_where_all_move_at_once_it_seldom_names_one(ramp):
    cases = 200
    named = sum(moving_order(event(seed, 0, ramp=ramp)).first is not None for seed in range(cases))
    # More would have a probability below 1e-4 if it named one in twenty.
    assert named <= binom.isf(1e-4, cases, 0.05)


def test_noise_that_they_share_makes_no_first_one():
    cases, named = 200, 0
    for seed in range(cases):
        rng = np.random.default_rng(seed)
        shared = rng.normal(size=LENGTH)
        noises = [0.8 * shared + 0.6 * rng.normal(size=LENGTH) for _ in range(4)]
        signals = [moved(f"s{one}", rng, AT, rng.uniform(3, 8), values=noise) for one, noise in enumerate(noises)]
        named += moving_order(signals).first is not None
    assert named <= binom.isf(1e-4, cases, 0.05)


@pytest.mark.parametrize(("lead", "ramp"), [(10, 0), (60, 60)])
def test_one_that_moved_first_is_found(lead, ramp):
    cases = 100
    firsts = [moving_order(event(seed, lead, ramp=ramp)).first for seed in range(cases)]
    assert set(firsts) <= {"s0", None}
    # Fewer would have a probability below 1e-4 if it were found eight times of ten.
    assert firsts.count("s0") >= binom.ppf(1e-4, cases, 0.8)


def test_a_signal_that_is_often_as_far_off_is_not_called_the_first():
    """It has been as far off in one of ten stretches before."""
    first, *others = event(1, 10)
    first.severity[5:AT:100] = 20.0
    order = moving_order([first, *others])
    assert order.movers[0].signal == "s0"
    assert order.lead > 0
    assert 0.05 < order.p < 0.3
    assert order.first is None
    assert str(order) == f"cannot tell: s0 seems to have moved first (p = {order.p:.2f})"


def test_dates_and_numbers_say_the_same():
    signals = event(2, 10)
    origin = np.datetime64("2026-01-01T00:00:00", "ns")
    dated = [
        EventSignal(
            one.name, origin + one.times * MINUTE, one.values, one.severity, origin + one.start * MINUTE,
            origin + one.end * MINUTE,
        )
        for one in signals
    ]  # fmt: skip
    plain, order = moving_order(signals), moving_order(dated)
    assert (order.first, order.p, order.lead) == (plain.first, plain.p, 60 * plain.lead)
    assert [one.earliest for one in order.movers] == [origin + one.earliest * MINUTE for one in plain.movers]
    assert str(plain) == f"first: s0, at least {plain.lead:.0f} observations before the rest (p = 0.01)"
    assert str(order) == f"first: s0, at least {plain.lead:.0f} min before the rest (p = 0.01)"


def test_the_score_is_the_largest_distance_in_quartile_ranges():
    signals = event(3, 10)
    order = moving_order(signals)
    before = min(one.earliest for one in order.movers)
    for mover in order.movers:
        (values,) = (one.values for one in signals if one.name == mover.signal)
        low, middle, high = np.quantile(values[:before], [0.25, 0.5, 0.75])
        assert mover.score == pytest.approx(np.abs(values[before:] - middle).max() / (high - low))


def test_constant_and_missing_values_are_no_trouble():
    first, second, third = event(4, 10)
    flat = np.zeros(LENGTH)
    flat[AT + 10 :] = 1.0
    second.values[:] = flat
    third.values[:] = np.nan
    order = moving_order([first, second, third])
    scores = {one.signal: one.score for one in order.movers}
    assert scores["s1"] == np.inf
    assert np.isnan(scores["s2"])


def test_what_cannot_be_told_is_said():
    rng = np.random.default_rng(5)
    one = moved("pump", rng, AT)
    assert str(moving_order([one])) == "only pump moved"
    together = [moved(name, rng, AT) for name in "dcab"]
    order = moving_order(together)
    assert set(order.candidates) == set("abcd")
    assert str(order) == "cannot tell which moved first: {}, {}, {} or {}".format(*order.candidates)
    more = moving_order([*together, *(moved(f"s{one}", rng, AT) for one in range(3))])
    assert str(more) == "cannot tell which moved first: {}, {}, {} or 4 others".format(*more.candidates)
    short = [moved(f"s{at}", rng, at, 8.0, length=300) for at in (100, 130)]
    for signal in short:
        signal.severity[:90] = np.nan
    order = moving_order(short)
    assert np.isnan(order.p)
    assert str(order) == "cannot tell: s100 seems to have moved first, but there is too little before to compare with"
    empty = EventSignal("gone", np.empty(0, dtype=np.int64), np.empty(0), np.empty(0), AT, AT)
    assert moving_order([empty, one]).first is None


def test_signals_with_other_times_are_compared_by_time():
    """The second one has an observation at every fifth time only."""
    rng = np.random.default_rng(6)
    first, second = moved("fast", rng, AT, 6.0), moved("slow", rng, 210, 8.0, length=240)
    slow = EventSignal("slow", second.times * 5, second.values, second.severity, second.start * 5, second.end * 5)
    order = moving_order([slow, first])
    assert order.first == "fast"
    assert order.lead <= 50


def moved_at(name, *began):
    """A signal with too little past to say more about its onset than its incident does."""
    return EventSignal(name, np.arange(40), np.zeros(40), np.zeros(40), 30, 35, began)


def order_by_hand(intervals, depends):
    """Of those that may have begun before all others surely had, the first on which the earliest one depends."""
    left = sorted(intervals, key=lambda name: (intervals[name][::-1], name))
    found = []
    while left:
        surely = min(intervals[name][1] for name in left)
        open_ones = [name for name in left if intervals[name][0] <= surely]
        chain = [left[0]]
        while further := [one for one in open_ones if one not in chain and (chain[-1], one) in depends]:
            chain.append(further[0])
        found.append(chain[-1])
        left.remove(chain[-1])
    return found


def test_what_others_depend_on_comes_first_where_onsets_cannot_be_told_apart():
    pump, power = moved_at("pump", 10, 14), moved_at("power", 12, 16)
    assert [one.signal for one in moving_order([pump, power]).movers] == ["pump", "power"]
    order = moving_order([pump, power], [("pump", "power")])
    assert [(one.signal, one.needed_by) for one in order.movers] == [("power", ("pump",)), ("pump", ())]
    assert str(order) == "cannot tell which moved first: power or pump; pump depends on power"
    fan = moved_at("fan", 11, 15)
    both = [("pump", "power"), ("fan", "power")]
    assert str(moving_order([pump, power, fan], both)).endswith("power, pump or fan; pump and fan depend on power")
    # Onsets that can be told apart decide, whatever is known.
    later = moving_order([pump, moved_at("power", 15, 16)], [("pump", "power")])
    assert [one.signal for one in later.movers] == ["pump", "power"]
    assert later.movers[1].needed_by == ("pump",)


def test_relations_never_contradict_onsets():
    rng = np.random.default_rng(0)
    names = list("abcdef")
    for _ in range(200):
        begins = rng.integers(0, 20, 6)
        intervals = {name: (int(one), int(one + rng.integers(0, 10))) for name, one in zip(names, begins, strict=True)}
        depends = [(one, other) for one in names for other in names if one != other and rng.random() < 0.3]
        movers = moving_order([moved_at(name, *intervals[name]) for name in names], depends).movers
        assert [one.signal for one in movers] == order_by_hand(intervals, depends)
        for at, one in enumerate(movers):
            assert not any(other.latest < one.earliest for other in movers[at + 1 :])
