"""Blocks: signals with the same settings, judged together by one fleet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.detection import DetectorSettings, Fleet, Incident, Verdicts
from tocsin.service.observations import StoredVerdict

# Signals per call of the forecaster and the scorer. More would gain little speed and reserve unused memory.
ROWS = 64
# Observations of each signal per call. The limit keeps memory small.
MOST_STEPS = 256


@dataclass(frozen=True, slots=True)
class DetectorInput:
    """Consecutive observations of one signal: `values[T, F]` at `times[T]`.

    `wanted` lists, in ascending order, the positions that need a verdict; the detector only learns from the others.
    `foretold` holds the forecasts made after each observation, `[T, F, width]`, if they were stored.
    """

    values: NDArray[np.float64]
    times: NDArray[np.datetime64]
    wanted: Sequence[int] = ()
    foretold: NDArray[np.float64] | None = None

    def split(self, foretold: NDArray[np.float64]) -> "tuple[DetectorInput, DetectorInput]":
        """The observations with a stored forecast, and the others. Neither part asks for verdicts."""
        at = len(foretold)
        return DetectorInput(self.values[:at], self.times[:at], (), foretold), DetectorInput(
            self.values[at:], self.times[at:]
        )


@dataclass(slots=True)
class DetectorOutput:
    """The verdicts that the input asked for, and the forecasts, `[T, F, width]`.

    The forecasts, of all forecasters, are None if these are fast enough to make them again.
    """

    judged: list[StoredVerdict]
    foretold: NDArray[np.float64] | None = None


class SignalBlock:
    """A fleet whose rows are assigned to signals with the same settings."""

    def __init__(self, settings: DetectorSettings, rows: int = ROWS) -> None:
        # The fleet names its rows by number, because signals come and go and may have any names.
        self.fleet = Fleet.of([str(row) for row in range(rows)], settings)
        self.rows = rows
        self._free = list(reversed(range(rows)))
        self._used: set[int] = set()
        self._slow = any(forecaster.slow for forecaster in settings.chosen_forecasters)

    @property
    def full(self) -> bool:
        """Whether all rows are in use."""
        return not self._free

    @property
    def empty(self) -> bool:
        """Whether no row is in use."""
        return len(self._free) == self.rows

    def take(self, state: Mapping[str, NDArray[Any]] | None) -> int:
        """Assign a row, with a detector in this state (None: a new one); ValueError if it has other settings."""
        row = self._free[-1]
        if state is not None or row in self._used:
            self.fleet.put(row, state)
        self._used.add(row)
        return self._free.pop()

    def take_all(self, states: Sequence[Mapping[str, NDArray[Any]]]) -> list[int]:
        """Assign rows with detectors in these states; ValueError, and no row, if other settings made one of them."""
        rows = self._free[-len(states) :][::-1]
        self.fleet.put_all(rows, states)
        self._used.update(rows)
        del self._free[-len(states) :]
        return rows

    def release(self, row: int) -> None:
        """Free a row."""
        self._free.append(row)

    def take_closed(self) -> list[tuple[int, Incident]]:
        """The incidents that ended since the last call, each with its row, oldest first."""
        return [(int(incident.signal), incident) for incident in self.fleet.take_closed_incidents()]

    def forget_incidents(self, row: int) -> None:
        """Make the next alarm of this row start a new incident."""
        self.fleet.forget_incidents(row)

    def accept(self, row: int) -> Incident:
        """Close the open incident of this row as a false alarm, and learn its observations as normal."""
        self.fleet.accept(row)
        ((_, incident),) = self.take_closed()
        return incident

    def learn_reference(self, row: int, values: NDArray[np.float64]) -> None:
        """From now on compare a row with these values only, `[T, F]`, not with what it learned before."""
        self.fleet.learn_reference(values, row=row)

    def run(self, inputs: Mapping[int, DetectorInput]) -> dict[int, DetectorOutput]:
        """Feed observations to the detectors of these rows. Either all inputs have stored forecasts, or none has."""
        judged: dict[int, list[StoredVerdict]] = {row: [] for row in inputs}
        noted: dict[int, list[NDArray[np.float64]]] = {row: [] for row in inputs}
        left = sorted(row for row, one in inputs.items() if len(one.times))
        at = 0
        while left:
            end = min(at + MOST_STEPS, *(len(inputs[row].times) for row in left))
            values = np.stack([inputs[row].values[at:end] for row in left], axis=1)
            times = np.stack([inputs[row].times[at:end] for row in left], axis=1)
            rows = None if len(left) == self.rows else np.array(left)
            known = [one for row in left if (one := inputs[row].foretold) is not None]
            foretold = np.stack([one[at:end] for one in known], axis=1) if known else None
            said: list[NDArray[np.float64]] = []
            noting = said.append if self._slow and foretold is None else None
            verdicts = self.fleet.run_arrays(values, rows=rows, times=times, foretold=foretold, noting=noting)
            for column, row in enumerate(left):
                noted[row] += [part[:, column] for part in said]
            wanted = {}
            for column, row in enumerate(left):
                first = len(judged[row])
                steps = [step - at for step in inputs[row].wanted[first : first + end - at] if step < end]
                if steps:
                    wanted[column] = steps
            for column, some in _columns(verdicts, wanted).items():
                judged[left[column]] += some
            at = end
            left = [row for row in left if len(inputs[row].times) > at]
        return {row: DetectorOutput(judged[row], np.concatenate(noted[row]) if noted[row] else None) for row in inputs}


def _columns(verdicts: Verdicts, wanted: Mapping[int, Sequence[int]]) -> dict[int, list[StoredVerdict]]:
    """The verdicts of some columns at some steps, in the form to store."""
    if not wanted:
        return {}
    value, forecast, low, high, feature_p, p, merged, alarm, warm = (
        array.tolist()
        for array in (
            verdicts.value, verdicts.forecast, verdicts.low, verdicts.high, verdicts.feature_p, verdicts.p,
            verdicts.merged, verdicts.alarm, verdicts.warm,
        )
    )  # fmt: skip
    return {
        n: [
            StoredVerdict(
                tuple(value[t][n]), tuple(forecast[t][n]), tuple(low[t][n]), tuple(high[t][n]), p[t][n], merged[t][n],
                tuple(feature_p[t][n]), alarm[t][n], warm[t][n],
            )
            for t in steps
        ]
        for n, steps in wanted.items()
    }  # fmt: skip


def load_kernels(settings: DetectorSettings) -> None:
    """Load all compiled code, so that the first observation of a signal with one feature does not wait for it."""
    moments = np.arange(2).view("datetime64[ns]")
    SignalBlock(settings, rows=1).run({0: DetectorInput(np.zeros((2, 1)), moments, ())})
