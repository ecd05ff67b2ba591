"""Compile the loops that most tests run: `python -m tests.warm`.

Numba keeps them on disk. Workers that begin together would each compile the same ones, for a minute and more.
"""

from concurrent.futures import ProcessPoolExecutor

import numpy as np

from tocsin import Detector, Fleet
from tocsin.conformal import W1ACAS, SlidingWindow
from tocsin.forecasting import available_forecasters, make_forecaster

VALUES = np.random.default_rng(0).normal(size=(600, 2))
PARTS = VALUES[:, :1] + np.random.default_rng(1).normal(size=(600, 3))  # features that depend on each other


def judge() -> None:
    """Judge one signal and two, at once and one by one: each way has arrays that lie differently in memory."""
    detector, fleet = Detector(forecaster="last-value"), Fleet(2, forecaster="last-value")
    detector.run(VALUES[:, 0])
    detector.update(VALUES[0, 0])
    fleet.run_arrays(VALUES)
    fleet.update(VALUES[0])


def relate() -> None:
    """The same for several features, which are compared with each other."""
    detector, fleet = Detector(3, forecaster="last-value"), Fleet(2, 3, forecaster="last-value")
    detector.run(PARTS)
    detector.update(PARTS[0])
    fleet.run_arrays(np.stack([PARTS, PARTS], axis=1))
    fleet.update(PARTS[:2])


def forecast() -> None:
    """Forecast and score, too, which takes about as long as the rest."""
    for name, forecaster in available_forecasters().items():
        if forecaster.extra is None:
            make_forecaster(name).forecast_origins(VALUES[:, 0], [400, 500], 3)
    for kind in (W1ACAS, SlidingWindow):
        for dtype in ("float32", "float64"):
            kind(dtype=dtype).run(VALUES[:, :1])


if __name__ == "__main__":
    with ProcessPoolExecutor(2) as pool:
        for part in [pool.submit(work) for work in (judge, relate, forecast)]:
            part.result()
