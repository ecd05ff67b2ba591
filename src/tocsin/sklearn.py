"""Tocsin as a scikit-learn outlier detector."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tocsin.detection import Detector, Result
from tocsin.detection.settings.arguments import keeps_settings
from tocsin.detection.settings.declaration import declared
from tocsin.detection.settings.detector_settings import DetectorSettings

try:
    from sklearn.base import BaseEstimator, OutlierMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError("tocsin.sklearn needs scikit-learn: pip install 'tocsin[sklearn]'") from error

# The data define the features and have no times, and predictions are about single observations.
_NOT_TAKEN = ("features", "promise", "zone", "holidays")
_KEPT = [name for name in declared(DetectorSettings) if name not in _NOT_TAKEN]


class ConformalOutlierDetector(OutlierMixin, BaseEstimator):
    """Judges rows in time order: 1 for normal rows, -1 where p is below the alarm rate.

    The order of the rows matters, unlike in most estimators: each row is judged by those before it, so do not shuffle
    them, and use `TimeSeriesSplit` for cross-validation.

    It takes the settings of `tocsin.Detector` as keyword arguments, except `features`, which are the columns, and
    `promise`, which is "observations" because a label is about one row. NaN marks a missing value and counts as normal.

    `fit` starts afresh and learns a history. `predict`, `decision_function` and `score_samples` judge rows that
    directly follow that history. They change nothing: each call starts where `fit` ended. `fit_predict` judges the
    history itself.

    Attributes
    ----------
    detector_ : the `tocsin.Detector` that learned the history.
    offset_ : log10 of the alarm rate: `decision_function` is `score_samples` minus it.
    n_features_in_, feature_names_in_ : the columns of the history.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.random.default_rng(0).normal(size=(1500, 1))
    >>> model = ConformalOutlierDetector(alarm_rate=0.005).fit(values[:1400])
    >>> values[1450] = 9.0
    >>> model.predict(values[1400:])[50]
    np.int64(-1)
    """

    @keeps_settings(*_NOT_TAKEN)
    def __init__(self) -> None:
        pass

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Learn a history with one row per observation. `y` is accepted for pipelines and ignored."""
        self._fit(X)
        return self

    def fit_predict(self, X: Any, y: Any = None, **_: Any) -> NDArray[np.int64]:  # noqa: N803
        """Learn a history and judge each row by the rows before it."""
        return self._labels(_score(self._fit(X)))

    def predict(self, X: Any) -> NDArray[np.int64]:  # noqa: N803
        """1 for normal rows, -1 for anomalous ones."""
        return self._labels(self.score_samples(X))

    def decision_function(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """The log10 ratio of p to the alarm rate; below 0 for anomalous rows."""
        return np.asarray(self.score_samples(X) - self.offset_)

    def score_samples(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """log10 of p: the lower, the more anomalous."""
        check_is_fitted(self, "detector_")
        rows = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite="allow-nan")
        ahead = Detector.from_state(self.detector_.state(), forecaster=self.detector_.fleet.forecasters)
        return _score(ahead.run(rows))

    def _fit(self, X: Any) -> Result:  # noqa: N803
        rows = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        settings = {name: getattr(self, name) for name in _KEPT}
        self.detector_ = Detector(rows.shape[1], promise="observations", **settings)
        self.detector_.fleet.complete_from(features=self.detector_.features, observations=len(rows))
        self.offset_ = float(np.log10(self.detector_.alarm_rate))
        return self.detector_.run(rows)

    def _labels(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.where(scores - self.offset_ < 0, -1, 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _score(result: Result) -> NDArray[np.float64]:
    # Missing values and rows during warm-up count as normal.
    return np.log10(np.where(np.isnan(result.p), 1.0, result.p))
