"""The classical models that the forecaster is compared with, all from statsforecast.

Their forecasts are costly and do not depend on our weights, so that they can be kept in a file.
"""

import hashlib
import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.adapters.statistical import LEVELS
from tocsin.cli.application import say
from tocsin.forecasting.forecaster import Floats, Forecast
from training.judging.folders import load_arrays
from training.judging.processes import in_processes
from training.judging.windows import Window

SEASONAL_NAIVE = "seasonal naive"
PEERS = ("last value", SEASONAL_NAIVE, "AutoETS", "AutoTheta")
# Prediction intervals in per cent: their lower ends are the levels .1 to .4, their upper ends .9 to .6.
_INTERVALS = (80, 60, 40, 20)


@dataclass(frozen=True)
class PeerForecasts:
    """Of every window, in the order of `PEERS`.

    `quantiles[peer, window, step, level]` at `LEVELS`, NaN beyond a window's end; the one in the middle is the point
    forecast. `failed[peer, window]` where the model could not be fitted and the seasonal naive forecast stands for it.
    """

    quantiles: Floats
    failed: NDArray[np.bool_]

    def of(self, peer: str) -> Forecast:
        """The forecasts of one of them."""
        quantiles = self.quantiles[PEERS.index(peer)]
        return Forecast(quantiles[..., LEVELS.index(0.5)], quantiles)


def peer_forecasts(windows: Sequence[Window], jobs: int, kept: Path | None) -> PeerForecasts:
    """The forecasts of all peers; from the file `kept` if it was made for the same windows, else written to it."""
    settings = _settings(windows)
    if kept is not None and kept.exists():
        arrays = load_arrays(kept)
        if str(arrays["settings"]) == settings:
            return PeerForecasts(arrays["quantiles"], arrays["failed"])
        say(f"{kept} was made for other windows or settings: the peers forecast anew")
    longest = max(window.truth.size for window in windows)
    quantiles = np.full((len(PEERS), len(windows), longest, len(LEVELS)), np.nan)
    failed = np.zeros((len(PEERS), len(windows)), dtype=np.bool_)
    tasks = [partial(_fit_all, window.context, window.period, window.truth.size) for window in windows]
    for row, outcome in enumerate(in_processes(tasks, jobs, "peers")):
        quantiles[:, row, : windows[row].truth.size], failed[:, row] = outcome
    if kept is not None:
        with kept.open("wb") as file:
            np.savez_compressed(file, settings=np.array(settings), quantiles=quantiles, failed=failed)
    return PeerForecasts(quantiles, failed)


def check_kept(kept: Path) -> None:
    """Refuse, before the work, a file that is something else or could not be written."""
    if not kept.exists():
        if not kept.parent.is_dir():
            raise ValueError(f"there is no folder {kept.parent}")
        return
    try:
        names = set(load_arrays(kept))
    except (OSError, ValueError) as error:
        raise ValueError(f"{kept} is no file of peers' forecasts: it {error}") from error
    if names != {"settings", "quantiles", "failed"}:
        raise ValueError(f"{kept} is no file of peers' forecasts: it holds {', '.join(sorted(names))}")


def _settings(windows: Sequence[Window]) -> str:
    """All that the forecasts depend on, as text."""
    digest = hashlib.sha256()
    for window in windows:
        digest.update(f"{window.period} {window.context.size} {window.truth.size} ".encode())
        digest.update(window.context.tobytes())
    made_with = {"peers": PEERS, "levels": LEVELS, "statsforecast": version("statsforecast")}
    return json.dumps({**made_with, "windows": digest.hexdigest()})


def _fit_all(context: Floats, period: int, steps: int) -> tuple[Floats, list[bool]]:
    """Quantiles `(peers, steps, levels)`, and which peers failed."""
    # Here, since it takes two seconds that other kinds of evaluation need not wait for.
    from statsforecast.models import AutoETS, AutoTheta, Naive, SeasonalNaive

    models = (
        Naive(),
        SeasonalNaive(season_length=period),
        AutoETS(season_length=period),
        AutoTheta(season_length=period),
    )
    fitted = [_fit(model, context, steps) for model in models]
    instead = fitted[PEERS.index(SEASONAL_NAIVE)]
    if instead is None:
        raise ArithmeticError(f"statsforecast has no seasonal naive forecast after {context.size} observations")
    failed = [quantiles is None for quantiles in fitted]
    return np.stack([instead if quantiles is None else quantiles for quantiles in fitted]), failed


def _fit(model: Any, context: Floats, steps: int) -> Floats | None:
    """Quantiles `(steps, levels)`; None where the model cannot be fitted or gives what is no number."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            outcome = model.forecast(y=context, h=steps, level=sorted(_INTERVALS))
        except Exception:  # fits meet unsuitable values with exceptions of many kinds, bare ones among them
            return None
    lower = [outcome.get(f"lo-{interval}") for interval in _INTERVALS]
    upper = [outcome.get(f"hi-{interval}") for interval in reversed(_INTERVALS)]
    columns = [*lower, outcome["mean"], *upper]
    if any(column is None for column in columns):
        return None
    quantiles = np.column_stack(columns).astype(np.float64)
    return quantiles if np.isfinite(quantiles).all() else None
