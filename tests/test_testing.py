"""What breaks a contract is told, by its name."""

import numpy as np
import pytest

from tocsin import LastValue
from tocsin.conformal import SlidingWindow
from tocsin.conformal.scorer import NO_RANKS
from tocsin.detection.views import Stream, View, ViewSession
from tocsin.testing import ContractError, check_forecaster, check_scorer, check_view


class Mean(View):
    """The mean of all values so far, as it should be."""

    name = "mean"
    ahead = 0

    def __init__(self):
        self.streams = (Stream("mean"),)

    @property
    def horizons(self):
        return self.ahead

    def open(self, signals, features, side):
        return self.session(signals, features)

    def words(self, stream, score, unit, interval):
        return f"a mean of {score:.3g} {unit}"


class MeanSession(ViewSession):
    def __init__(self, signals, features):
        self._sums = np.zeros((signals, features, 2))

    def run(self, seen, rows, scores):
        for t, values in enumerate(seen.values):
            there = ~np.isnan(values)
            self._sums[rows, :, 0] += np.where(there, values, 0.0)
            self._sums[rows, :, 1] += there
            with np.errstate(invalid="ignore"):
                means = self._sums[rows, :, 0] / self._sums[rows, :, 1]
            scores[t, ..., 0] = np.where(there, means, np.nan)

    def state(self, rows):
        return {"sums": self._sums[rows]}

    def _restore(self, state, rows):
        self._sums[rows] = state["sums"]


Mean.session = MeanSession


def view_with(**methods):
    session = type("Session", (MeanSession,), methods)
    return type("Changed", (Mean,), {"session": session})()


def run_that(change):
    def run(self, seen, rows, scores):
        MeanSession.run(self, seen, rows, scores)
        change(self, seen, rows, scores)

    return run


def grow(self, seen, rows, scores):
    self._seen = np.concatenate([getattr(self, "_seen", np.empty(0)), seen.values.ravel()])


def keep_last(self, seen, rows, scores):
    """Looks at what came with the call before, which no state knows of."""
    scores[:] += getattr(self, "_last", 0.0)
    self._last = 1e-9 * float(len(seen.values))


def count_others(self, seen, rows, scores):
    others = np.setdiff1d(np.arange(len(self._sums)), rows)
    self._sums[others, :, 1] += len(seen.values)


BROKEN = {
    "one by one": (run_that(lambda s, seen, rows, scores: scores.__iadd__(scores.shape[0])), "one by one"),
    "changes": (
        run_that(lambda s, seen, rows, scores: seen.values.fill(0.0)),
        "must not change its input: it changed values",
    ),
    "all rows": (run_that(count_others), "selected rows"),
    "missing": (run_that(lambda s, seen, rows, scores: scores.__setitem__(np.isnan(scores), 0.0)), "no score"),
    "grows": (run_that(grow), "memory must not grow"),
    "remembers": (run_that(keep_last), "one by one"),
}


@pytest.mark.slow
def test_a_good_view_passes():
    check_view(Mean())


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_a_view_that_breaks_the_contract_is_told_how(name):
    run, message = BROKEN[name]
    with pytest.raises(ContractError, match=message):
        check_view(view_with(run=run))


@pytest.mark.slow
def test_a_view_may_not_count_on_a_second_forecaster():
    with pytest.raises(IndexError):
        check_view(view_with(run=run_that(lambda s, seen, rows, scores: seen.forecasts[1])))


def test_states_that_are_not_whole_or_not_copies_are_told():
    with pytest.raises(ContractError, match="a state must be a copy"):
        check_view(view_with(state=lambda self, rows: {"sums": self._sums[: rows.size]}))
    with pytest.raises(ContractError, match="must continue with the same scores"):
        check_view(view_with(state=lambda self, rows: {}, _restore=lambda self, state, rows: None))
    with pytest.raises(ContractError, match=r"plain arrays.*'sums'\] is list"):
        check_view(view_with(state=lambda self, rows: {"sums": [1.0]}))
    with pytest.raises(ContractError, match="must have the requested 4 first"):
        check_view(view_with(state=lambda self, rows: {"sums": self._sums[rows].T.copy()}))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": ""}, "name must be a text"),
        ({"streams": ()}, "streams must be Streams"),
        ({"streams": (Stream("a"), Stream("a"))}, "distinct names"),
        ({"streams": (Stream("a", 0),)}, "lengths must be 1 or more"),
        ({"forecasts": False, "ahead": 3}, "a view that uses forecasts must set forecasts"),
        ({"forecasts": True, "ahead": -1}, "horizons must not be negative, got -1"),
        ({"words": lambda stream, score, unit, interval: None}, "words must be a text"),
        ({"sided": True}, "mirror image"),
    ],
    ids=lambda given: next(iter(given)) if isinstance(given, dict) else None,
)
def test_declarations_that_cannot_be_are_told(changes, message):
    view = Mean()
    vars(view).update(changes)
    with pytest.raises(ContractError, match=message):
        check_view(view)


def test_what_is_no_view_is_told():
    with pytest.raises(ContractError, match="a view must be a View, got dict"):
        check_view({})


class Shared(SlidingWindow):
    """Counts a missing score in one stream as one in the next."""

    def _advance(self, scores, learn, p, rank=NO_RANKS):
        super()._advance(np.where(np.isnan(scores), np.roll(scores, 1, axis=1), scores), learn, p, rank)


class Clipped(SlidingWindow):
    def _advance(self, scores, learn, p, rank=NO_RANKS):
        super()._advance(scores, learn, p, rank)
        p[p < 0.1] = 0.0


@pytest.mark.parametrize(("kind", "message"), [(Shared, "got a p-value"), (Clipped, "above 0 and at most 1")])
def test_a_scorer_that_breaks_the_contract_is_told_how(kind, message):
    with pytest.raises(ContractError, match=message):
        check_scorer(lambda streams: kind(streams, window=20))
    with pytest.raises(ContractError, match="a scorer must be a Scorer, got Fake"):
        check_scorer(lambda streams: type("Fake", (), {"run": None})())


class Hasty(LastValue):
    """Says something before there is anything to say."""

    def open(self, series, horizon):
        session = super().open(series, horizon)
        run = session._run

        def hasty(values, rows, wanted):
            forecast = run(values, rows, wanted)
            return forecast._replace(median=np.nan_to_num(forecast.median))

        session._run = hasty
        return session


class Unsaid(LastValue):
    def parameters(self):
        return {"what": object()}


def test_a_forecaster_that_breaks_the_contract_is_told_how():
    check_forecaster(LastValue())
    with pytest.raises(ContractError, match="there must be no forecast before the first value"):
        check_forecaster(Hasty())
    with pytest.raises(ContractError, match="parameters must be JSON types"):
        check_forecaster(Unsaid())
