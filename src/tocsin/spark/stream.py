"""Streams of many signals on a cluster, with the state of each detector in Spark's keyed state."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tocsin.data import parse_duration
from tocsin.spark.batch import with_times
from tocsin.spark.plan import carried, choose, make_plan, require_streaming
from tocsin.spark.rows import Findings, Layout
from tocsin.spark.step import Stepped, step_of

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def watch(
    stream: Any,
    *,
    id: str = "id",  # noqa: A002
    time: str = "time",
    values: str | Iterable[str] | None = None,
    ttl: Any = None,
    **settings: Any,
) -> Findings:
    """Verdicts on a stream of Structured Streaming, with the numbers of one detector per signal.

    Rows of verdicts have a `status`: "scored"; "late" for an observation older than the newest of its signal and
    "duplicate" for one of the same time, which have no verdict. Incidents are emitted when they end, and with `open`
    each time a trigger adds an alarm: the newest row for a signal and `start` is valid.

    Parameters
    ----------
    stream : a streaming table with one row per observation.
    id, time, values : its columns, as for `detect`.
    ttl : how long to keep the state of a signal that no longer sends ("30d"); forever if None. A signal that comes back
        later starts afresh.
    **settings : those of `Detector`. The forecaster is given by name. With an `interval`, skipped observations count as
        missing; without one, gaps are unknown.
    """
    require_streaming()
    session = stream.sparkSession
    if session.conf.get(PROVIDER, "") != ROCKSDB:
        raise ValueError(f"{PROVIDER} must be RocksDB's, got {session.conf.get(PROVIDER, '')!r}: "
                         f"spark.conf.set({PROVIDER!r}, {ROCKSDB!r})")  # fmt: skip
    given = choose(stream, id=id, time=time, values=values)
    plan = make_plan(given, settings, interval_known=True)
    layout = Layout(plan.features, plan.clock, streamed=True)
    lasts = None if ttl is None else round(parse_duration(ttl) / np.timedelta64(1, "ms"))
    rows = (
        carried(stream, given)
        .groupBy("signal")
        .transformWithStateInPandas(
            statefulProcessor=_processor(plan.text(), lasts),
            outputStructType=layout.schema,
            outputMode="Append",
            timeMode="None" if lasts is None else "ProcessingTime",
        )
    )
    return Findings(with_times(rows, layout))


def _processor(plan: str, ttl: int | None) -> Any:
    """Passes the rows and state of a signal to a step, and stores the new state: once for each trigger."""
    from pyspark.sql.streaming import StatefulProcessor

    class Watcher(StatefulProcessor):  # type: ignore[misc]
        def init(self, handle: Any) -> None:
            self._state = handle.getValueState("detector", "data binary", ttl)

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
            state = self._state.get() if key[0] else None
            stepped = take(plan, key[0], list(rows), None if state is None else bytes(state[0]))
            if stepped.state is not None:
                self._state.update((stepped.state,))
            if stepped.rows:
                yield as_pandas(stepped.rows)

        def close(self) -> None:
            pass

    return Watcher()


def take(plan: str, name: str, frames: list[Any], state: bytes | None) -> Stepped:
    """The rows of one signal in a trigger, as pandas frames with the columns of `carried`."""
    step = step_of(plan)
    if not name:
        return step.nameless(sum(map(len, frames)))
    times = np.concatenate([frame["time"].to_numpy() for frame in frames])
    columns = [name for name in frames[0].columns if name.startswith("value_")]
    values = np.concatenate([frame[columns].to_numpy(dtype=np.float64) for frame in frames])
    return step.take(name, times, values, state)


def as_pandas(rows: list[Any]) -> Any:
    """Arrow batches as one pandas frame, in nullable types, so that whole numbers stay whole."""
    import pandas as pd
    import pyarrow as pa

    nullable = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    return pa.Table.from_batches(rows).to_pandas(types_mapper=nullable.get)
