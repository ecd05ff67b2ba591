"""Signals, what one machine says of them, and comparisons to the last bit."""

import numpy as np
import pandas as pd

from tocsin.data import signals_from_frame
from tocsin.detection import Detector, detect_signals
from tocsin.detection.incidents.incident import incident_columns

# A rate, because without one that of a history depends on its length, and that of a stream does not.
QUICK = {"forecaster": "last-value", "views": ["error"], "alarm_rate": 0.001}


def make_signals(count, length, seed=0, features=1):
    """A table of signals with faults, in the order of time, dates in UTC."""
    rng = np.random.default_rng(seed)
    values = np.sin(np.arange(length) / 7)[:, np.newaxis, np.newaxis] + rng.normal(size=(length, count, features))
    for column in range(count):
        values[rng.integers(length // 2, length), column] += 11
    values[rng.random(values.shape) < 0.01] = np.nan
    times = pd.Timestamp("2026-10-24T12:00", tz="UTC") + pd.to_timedelta(np.arange(length) * 300, unit="s")
    frame = pd.DataFrame({"id": np.tile([f"signal {k}" for k in range(count)], length), "time": times.repeat(count)})
    for feature in range(features):
        frame["value" if features == 1 else f"v{feature}"] = values[:, :, feature].ravel()
    return frame


def on_one_machine(frame, **settings):
    """Verdicts and incidents by signal, as `tocsin detect` makes them."""
    with signals_from_frame(frame, id="id", time="time") as signals:
        results = list(detect_signals(signals, settings, keep=True))
    assert all(result.error is None for result in results)
    return {one.signal: one.columns for one in results}, {one.signal: one.incident_list for one in results}


def streamed_on_one_machine(frame, **settings):
    """The same from a detector that is given one observation after the other."""
    values = [name for name in frame.columns if name not in ("id", "time")]
    found = {}
    for name, rows in frame.groupby("id"):
        detector = Detector(values, **settings)
        for row in rows.sort_values("time").itertuples(index=False):
            time = row.time.tz_convert(None).to_numpy() if isinstance(row.time, pd.Timestamp) else row.time
            found.setdefault(name, []).append(detector.update([getattr(row, value) for value in values], time))
    return found


def same(column, expected):
    """Whether two columns agree to the last bit; what is missing is None in one and NaN in the other."""
    if column.isna().all():
        return pd.isna(expected).all()
    if expected.dtype.kind == "f":
        got = pd.array(column, dtype="Float64").to_numpy(np.float64, na_value=np.nan)
        gone = np.isnan(expected)
        return (np.isnan(got) == gone).all() and (got.view(np.int64) == expected.view(np.int64))[~gone].all()
    if expected.dtype.kind == "M":
        return np.array_equal(column.to_numpy(expected.dtype), expected, equal_nan=True)
    return np.array_equal(np.asarray(column.tolist(), dtype=expected.dtype), expected)


def assert_verdicts(collected, expected):
    """Every verdict is there once, with the numbers of `expected`, columns by signal."""
    groups = dict(list(collected.groupby("signal")))
    assert groups.keys() == expected.keys()
    for name, columns in expected.items():
        rows = groups[name].sort_values("time", kind="stable")
        assert np.array_equal(rows["time"].to_numpy(columns["time"].dtype), columns["time"]), name
        for column, numbers in columns.items():
            if column != "time":
                assert same(rows[column], numbers), (name, column)


def assert_incidents(collected, expected):
    """Every incident is there once, with the numbers of `expected`, incidents by signal."""
    columns = incident_columns([one for name in sorted(expected) for one in expected[name]])
    rows = collected.sort_values(["signal", "start"], kind="stable")
    assert len(rows) == len(columns["signal"]) > 0
    for name, numbers in columns.items():
        assert same(rows[name], numbers), name


def collect(table):
    """A table of Spark as a frame of pandas, its timestamps as one machine has them: in UTC, without a zone."""
    from pyspark.sql import functions, types

    dated = [field.name for field in table.schema.fields if isinstance(field.dataType, types.TimestampType)]
    for name in dated:
        table = table.withColumn(name, functions.unix_micros(name))
    frame = table.toPandas()
    for name in dated:
        frame[name] = pd.to_datetime(frame[name], unit="us").astype("datetime64[ns]")
    return frame
