"""Requests as Azure's clients send them: read, checked, and put on an even grid of time."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tocsin.forecasting import Floats

    Steps = NDArray[np.int64]

MOST = 8640
# Beyond this, a series is mostly made up.
MOST_STEPS_PER_POINT = 2


class AzureError(Exception):
    """A request that is refused, with one of the codes that Azure's clients know."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


#: The unit of the interval between two points.
Granularity = Literal["yearly", "monthly", "weekly", "daily", "hourly", "minutely", "secondly", "microsecond", "none"]
#: How missing points are filled.
ImputeMode = Literal["auto", "previous", "linear", "fixed", "zero", "notFill"]
_SECONDS = {"weekly": 604800, "daily": 86400, "hourly": 3600, "minutely": 60, "secondly": 1, "microsecond": 1e-6}
_MONTHS = {"yearly": 12, "monthly": 1}
# The codes of Azure's errors, by the field that is to blame.
_CODES = {
    "series": "InvalidSeries",
    "granularity": "InvalidGranularity",
    "customInterval": "InvalidCustomInterval",
    "period": "InvalidPeriod",
    "maxAnomalyRatio": "InvalidModelArgument",
    "sensitivity": "InvalidModelArgument",
    "threshold": "InvalidModelArgument",
    "stableTrendWindow": "InvalidModelArgument",
    "imputeMode": "InvalidImputeMode",
    "imputeFixedValue": "InvalidImputeFixedValue",
}

# Beyond this, differences and squares would be infinite.
_Finite = Annotated[float, Field(allow_inf_nan=False, ge=-1e100, le=1e100)]


class _Model(BaseModel):
    # Azure ignores fields that it does not know; its clients may send some.
    model_config = ConfigDict(extra="ignore", alias_generator=to_camel, frozen=True)


class Point(_Model):
    """One observation."""

    value: _Finite
    timestamp: datetime | None = None


class _Series(_Model):
    series: Annotated[tuple[Point, ...], Field(min_length=1, max_length=MOST)]
    granularity: Granularity = "none"
    custom_interval: Annotated[int | None, Field(gt=0, le=10**6)] = None
    period: Annotated[int | None, Field(ge=0, le=MOST)] = None

    def steps(self) -> "Steps":
        """Where each point is on the even grid of time, from 0."""
        if self.granularity == "none":
            return np.arange(len(self.series))
        times = [self._time(place) for place in range(len(self.series))]
        custom = self.custom_interval or 1
        if self.granularity in _MONTHS:
            months = np.array([time.year * 12 + time.month for time in times])
            steps = (months - months[0]) / (_MONTHS[self.granularity] * custom)
        else:
            seconds = np.array([(time - times[0]).total_seconds() for time in times])
            steps = seconds / (_SECONDS[self.granularity] * custom)
        grid: Steps = np.rint(steps).astype(np.int64)
        wrong = np.flatnonzero(np.diff(grid) <= 0)
        if wrong.size:
            place = int(wrong[0]) + 1
            raise AzureError(
                "InvalidSeries",
                f"series: timestamps must ascend by at least one interval ({custom} x {self.granularity}), but point "
                f"{place}, {times[place].isoformat()}, follows {times[place - 1].isoformat()}",
            )
        if grid[-1] >= MOST_STEPS_PER_POINT * len(grid):
            raise AzureError(
                "InvalidSeries",
                f"series: more than half of its points are missing: {len(grid)} of {grid[-1] + 1} at this granularity "
                f"({custom} x {self.granularity})",
            )
        return grid

    def _time(self, place: int) -> datetime:
        time = self.series[place].timestamp
        if time is None:
            raise AzureError(
                "InvalidSeries", f"series: point {place} needs a timestamp, because granularity is {self.granularity}"
            )
        return time if time.tzinfo else time.replace(tzinfo=UTC)

    def on_grid(self) -> "tuple[Floats, Steps]":
        """The values at each step, NaN where there is none, and the step of each point."""
        steps = self.steps()
        values = np.full(steps[-1] + 1, np.nan)
        values[steps] = [point.value for point in self.series]
        return values, steps


class DetectRequest(_Series):
    """What `entire` and `last` take."""

    max_anomaly_ratio: Annotated[float | None, Field(gt=0, lt=0.5)] = None
    sensitivity: Annotated[int, Field(ge=0, le=99)] = 95
    impute_mode: ImputeMode = "auto"
    impute_fixed_value: _Finite | None = None

    def on_grid(self) -> "tuple[Floats, Steps]":
        """The values at each step, with missing ones filled as asked; "auto" and "notFill" leave them missing."""
        values, steps = super().on_grid()
        missing = np.isnan(values)
        if self.impute_mode == "previous":
            values = values[np.maximum.accumulate(np.where(missing, 0, np.arange(values.size)))]
        elif self.impute_mode == "linear":
            values[missing] = np.interp(np.flatnonzero(missing), np.flatnonzero(~missing), values[~missing])
        elif self.impute_mode == "zero":
            values[missing] = 0.0
        elif self.impute_mode == "fixed":
            if self.impute_fixed_value is None:
                raise AzureError("InvalidImputeFixedValue", "imputeFixedValue: needed where imputeMode is fixed")
            values[missing] = self.impute_fixed_value
        return values, steps


class ChangePointRequest(_Series):
    """What `changepoint` takes."""

    granularity: Granularity
    stable_trend_window: Annotated[int | None, Field(ge=2, le=MOST // 2)] = None
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.9


R = TypeVar("R", DetectRequest, ChangePointRequest)


def read_request(model: type[R], body: bytes) -> R:
    """A request of this kind; AzureError says what is wrong with it."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    field = str(first["loc"][0]) if first["loc"] else ""
    if not field:
        raise AzureError("InvalidJsonFormat", f"the body must be a JSON object: {first['msg']}")
    place = ".".join(map(str, first["loc"]))
    if first["type"] == "missing" and len(first["loc"]) == 1:
        raise AzureError(f"Required{field.capitalize()}", f"{field}: required")
    given = repr(first["input"])
    got = f", got {given}" if len(given) < 100 else ""
    if place == "series" and isinstance(first["input"], list):
        got = f", got {len(first['input'])} points"
    raise AzureError(_CODES.get(field, "BadArgument"), f"{place}: {first['msg']}{got}")
