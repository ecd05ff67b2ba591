"""Detectors in files: arrays and JSON in npz, never pickle."""

import io
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin import checks
from tocsin.arrays import read_arrays, write_arrays
from tocsin.conformal.scorer import MOST_THREADS
from tocsin.detection.fleet import Fleet
from tocsin.detection.incidents import IncidentLog
from tocsin.forecasting import Forecaster, make_forecaster
from tocsin.forecasting.registry import find_forecaster

FORMAT = 2
_SETTINGS = (
    "horizons", "nonconformity", "scaled", "light", "merge", "merge_features", "recalibrate", "learn", "hold_below",
    "hold_after", "hold_most", "hold_context", "refresh", "learning_rate",
)  # fmt: skip


def fleet_state(fleet: Fleet, extra: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """Everything that `fleet` needs to go on later, and something more for JSON, as flat plain arrays."""
    return rows_state(fleet, np.arange(len(fleet.names)), fleet.log, extra)


def rows_state(
    fleet: Fleet, rows: NDArray[np.intp], log: IncidentLog, extra: dict[str, Any]
) -> dict[str, NDArray[Any]]:
    """The state of a fleet of only these rows of `fleet`; `log` has their incidents, and their names."""
    header = {
        "format": FORMAT,
        "signals": log.names,
        **made_of(fleet),
        "incidents": log.state(),
        "extra": extra,
    }
    tree = {"header": np.array(json.dumps(header, default=_to_json)), "audit": fleet.trail.counts[rows]}
    return {**tree, **dict(_flat("pipeline", fleet.pipeline.state(rows)))}


def made_of(fleet: Fleet) -> dict[str, Any]:
    """What a fleet was made of, but for its signals, in types that JSON knows."""
    made = {
        "features": fleet.features,
        "settings": {**fleet.given, **{name: getattr(fleet.settings, name) for name in _SETTINGS}},
        "forecaster": _forecaster_header(fleet.settings.forecaster),
    }
    return dict(json.loads(json.dumps(made, default=_to_json)))


def fleet_from_state(
    arrays: Mapping[str, NDArray[Any]], *, forecaster: Forecaster | None, threads: int
) -> tuple[Fleet, dict[str, Any]]:
    """The fleet that `fleet_state` described, and what was said more."""
    threads = checks.integer("threads", threads, least=1, most=MOST_THREADS)
    header = read_header(arrays)
    chosen = _forecaster_from_header(header["forecaster"], forecaster)  # a wrong one is no damage of the file
    with damage_told():
        fleet = Fleet(
            header["signals"], header["features"], **header["settings"], forecaster=chosen, threads=threads
        )  # fmt: skip
        fleet.pipeline.restore(_tree("pipeline", arrays))
        counts, audit = fleet.trail.counts, arrays["audit"]
        if audit.shape != counts.shape or audit.dtype != counts.dtype or np.any(audit < 0):
            raise ValueError("audit must hold counts for each signal")
        counts[...] = audit
        fleet.log.restore(header["incidents"])
        return fleet, dict(header["extra"])


def read_header(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """What a state says about itself, with a forecaster's parameters where there is a forecaster."""
    with damage_told():
        header: dict[str, Any] = json.loads(str(arrays["header"]), object_hook=_time_from_json)
        version = header["format"]
    if version != FORMAT:  # a state of another version is no damage of the file
        raise ValueError(
            f"the state of a detector must have format {FORMAT}, the version this release reads, got {version!r}"
        )
    with damage_told():
        known = header["forecaster"]
        if known is not None and not isinstance(known["parameters"], dict):
            raise ValueError(f"a forecaster must have parameters, got {known!r}")
        return header


def arrays_to_bytes(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """A state as the content of a file, for a database or another process."""
    file = io.BytesIO()
    write_arrays(arrays, file)
    return file.getvalue()


def arrays_from_bytes(data: bytes) -> dict[str, NDArray[Any]]:
    """The state that `arrays_to_bytes` was given."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"data must be bytes, got {type(data).__name__}")
    try:
        return read_arrays(io.BytesIO(data), "a detector")
    except ValueError as error:
        raise ValueError(
            f"data must be a detector as bytes, as tocsin gave them, got {len(data)} bytes: {error.__cause__}"
        ) from error


@contextmanager
def damage_told() -> Iterator[None]:
    """Says of everything that a damaged state can lead to that it is damaged."""
    try:
        yield
    except KeyError as error:
        raise ValueError(f"this is not the state of a detector, or it is damaged: {error} is missing") from error
    except (IndexError, AttributeError, OverflowError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"this is not the state of a detector, or it is damaged: {error}") from error


def _forecaster_header(forecaster: Forecaster | None) -> dict[str, Any] | None:
    if forecaster is None:
        return None
    return {"name": forecaster.name, "parameters": forecaster.parameters()}


def _forecaster_from_header(header: dict[str, Any] | None, given: Forecaster | None) -> Forecaster | None:
    if given is not None:
        if json.loads(json.dumps(_forecaster_header(given))) != header:
            raise ValueError(f"forecaster must be the one that was saved, {header}, got {given!r}")
        return given
    if header is None:
        return None
    if find_forecaster(header["name"]) is None:
        raise ValueError(f"forecaster {header['name']!r} does not go by a name here: give it as `forecaster`")
    return make_forecaster(header["name"], header["parameters"])


def _flat(prefix: str, tree: Mapping[str, Any]) -> Iterator[tuple[str, NDArray[Any]]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(f"{prefix}/{name}", value)
        else:
            yield f"{prefix}/{name}", np.asarray(value)


def _tree(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, value in arrays.items():
        path = name.split("/")
        if path[0] != prefix:
            continue
        branch = tree
        for part in path[1:-1]:
            branch = branch.setdefault(part, {})
        branch[path[-1]] = value
    return tree


def _to_json(value: Any) -> Any:
    if isinstance(value, np.datetime64):
        return {"datetime64[ns]": int(value.astype("datetime64[ns]").astype(np.int64))}
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"times must be numbers, datetimes or None to be saved, got {value!r}")


def _time_from_json(value: dict[str, Any]) -> Any:
    return np.datetime64(value["datetime64[ns]"], "ns") if value.keys() == {"datetime64[ns]"} else value
