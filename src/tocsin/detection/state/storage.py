"""Storage of detectors: arrays and JSON in npz files, never pickle."""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.arrays import is_packed, read_arrays, unpack_arrays, write_arrays
from tocsin.detection.settings.detector_settings import DetectorSettings
from tocsin.forecasting import Forecaster, make_forecaster
from tocsin.forecasting.forecaster import find_forecaster

FORMAT = 7

#: Forecasters that a state does not name: the first one, or all of them in their order.
Given = Forecaster | Sequence[Forecaster] | None


def pack_state(header: Mapping[str, Any], trees: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """A state, made of a header and trees of arrays, as flat plain arrays."""
    text = json.dumps({"format": FORMAT, **header}, default=_to_json)
    # Bytes: numpy would use four bytes for each letter.
    return {"header": np.array(bytearray(text.encode()), dtype=np.uint8), **dict(_flat("", trees))}


def settings_header(settings: DetectorSettings) -> dict[str, Any]:
    """The settings in a state, in JSON types."""
    made = {
        "features": settings.feature_names,
        "settings": settings.saved(),
        "forecasters": [_forecaster_header(forecaster) for forecaster in settings.chosen_forecasters],
    }
    return dict(json.loads(json.dumps(made, default=_to_json)))


def settings_of(header: Mapping[str, Any], *, forecaster: Given, threads: int) -> DetectorSettings:
    """The settings that `settings_header` described."""
    # A wrong forecaster does not mean a damaged file.
    chosen = _forecasters_from_header(header["forecasters"], forecaster)
    with reports_damage():
        return DetectorSettings(header["features"], **header["settings"], forecaster=chosen, threads=threads)


def read_header(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """The header of a state, with the forecaster's parameters if there is a forecaster."""
    with reports_damage():
        stored = arrays["header"]
        text = stored.tobytes().decode() if stored.dtype == np.uint8 else str(stored)  # as earlier versions wrote it
        header: dict[str, Any] = json.loads(text, object_hook=_time_from_json)
        version = header["format"]
    if version != FORMAT:  # another version does not mean a damaged file
        raise ValueError(
            f"the state of a detector must have format {FORMAT}, the version this release reads, got {version!r}: "
            "states of other versions cannot be read, so let a new detector learn from the history"
        )
    with reports_damage():
        for known in header["forecasters"]:
            if not isinstance(known["parameters"], dict):
                raise ValueError(f"a forecaster must have parameters, got {known!r}")
        header["extra"] = dict(header["extra"])
        return header


def arrays_to_bytes(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """A state as the content of a file, for a database or another process."""
    file = io.BytesIO()
    write_arrays(arrays, file)
    return file.getvalue()


def arrays_from_bytes(data: bytes) -> dict[str, NDArray[Any]]:
    """The state that `arrays_to_bytes` or `pack_arrays` was given."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"data must be bytes, got {type(data).__name__}")
    try:
        return unpack_arrays(bytes(data)) if is_packed(bytes(data)) else read_arrays(io.BytesIO(data), "a detector")
    except ValueError as error:
        raise ValueError(
            f"data must be a detector saved by tocsin as bytes, got {len(data)} bytes: {error.__cause__ or error}"
        ) from error


@contextmanager
def reports_damage() -> Iterator[None]:
    """Reports every error that a damaged state can cause as damage."""
    try:
        yield
    except KeyError as error:
        raise ValueError(f"this is not the state of a detector, or it is damaged: {error} is missing") from error
    except (IndexError, AttributeError, OverflowError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"this is not the state of a detector, or it is damaged: {error}") from error


def _forecaster_header(forecaster: Forecaster) -> dict[str, Any]:
    return {"name": forecaster.name, "parameters": forecaster.parameters()}


def _forecasters_from_header(headers: Sequence[dict[str, Any]], given: Given) -> tuple[Forecaster, ...] | None:
    """The saved forecasters, the first ones as they are given; None if the values are scores."""
    known = () if given is None else (given,) if isinstance(given, Forecaster) else tuple(given)
    for number, forecaster in enumerate(known):
        saved = headers[number] if number < len(headers) else None
        if json.loads(json.dumps(_forecaster_header(forecaster))) != saved:
            raise ValueError(f"forecaster must be the one that was saved, {saved}, got {forecaster!r}")
    return (*known, *(_made(header) for header in headers[len(known) :])) or None


def _made(header: dict[str, Any]) -> Forecaster:
    if find_forecaster(header["name"]) is None:
        raise ValueError(f"forecaster {header['name']!r} is not registered here: pass it as `forecaster`")
    return make_forecaster(header["name"], header["parameters"])


def _flat(prefix: str, tree: Mapping[str, Any]) -> Iterator[tuple[str, NDArray[Any]]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(f"{prefix}{name}/", value)
        else:
            yield f"{prefix}{name}", np.asarray(value)


def subtree(name: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """The tree of arrays with this name in a packed state."""
    tree: dict[str, Any] = {}
    for path, value in arrays.items():
        first, *parts = path.split("/")
        if first != name or not parts:
            continue
        branch = tree
        for part in parts[:-1]:
            branch = branch.setdefault(part, {})
        branch[parts[-1]] = value
    return tree


def _to_json(value: Any) -> Any:
    if isinstance(value, np.datetime64):
        return {"datetime64[ns]": int(value.astype("datetime64[ns]").astype(np.int64))}
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"times must be numbers, datetimes or None to be saved, got {value!r}")


def _time_from_json(value: dict[str, Any]) -> Any:
    return np.datetime64(value["datetime64[ns]"], "ns") if value.keys() == {"datetime64[ns]"} else value


Arrays = Mapping[str, NDArray[Any]]

# A scorer's header in a state, besides the arrays of its streams.
_PARAMETERS = "/parameters"


def joined(states: Sequence[Arrays]) -> dict[str, NDArray[Any]]:
    """The state of a fleet from the states of its signals, which must share their settings; times are left out.

    The signals are named by their numbers.
    """
    headers = [read_header(state) for state in states]
    with reports_damage():
        names = [name for name in states[0] if name != "header"]
        if any(len(header["signals"]) != 1 for header in headers):
            raise ValueError("each state must be of one signal")
        if any(state.keys() != states[0].keys() for state in states):
            raise ValueError("all states must hold the same arrays")
        made = {name: value for name, value in headers[0].items() if name not in ("format", "incidents", "extra")}
        incidents = _joined_incidents([header["incidents"] for header in headers])
        header = {
            **made,
            "signals": [str(number) for number in range(len(states))],
            "incidents": incidents,
            "extra": {},
        }
        return pack_state(header, {name: _joined_array(name, [state[name] for state in states]) for name in names})


def _joined_incidents(logs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The entries of each log's only signal, with that signal's number."""
    return {
        "open": {
            str(number): {**incident, "signal": str(number)}
            for number, log in enumerate(logs)
            for incident in log["open"].values()
        },
        "closed": [
            {**incident, "signal": str(number)} for number, log in enumerate(logs) for incident in log["closed"]
        ],
        "labelled": [number for number, log in enumerate(logs) if log["labelled"]],
    }


def _joined_array(name: str, arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    if name.endswith(_PARAMETERS):
        return _of_streams(arrays[0], len(arrays))
    if arrays[0].ndim == 0:
        return arrays[0]
    longest = max(array.shape[-1] for array in arrays)
    if any(array.shape[-1] != longest for array in arrays):
        # Only some signals have references, of any length.
        arrays = [_padded(array, longest) for array in arrays]
    return np.concatenate(arrays)


def _padded(array: NDArray[Any], longest: int) -> NDArray[Any]:
    wide = np.full((*array.shape[:-1], longest), np.nan)
    wide[..., : array.shape[-1]] = array
    return wide


def split(arrays: Arrays, count: int) -> list[dict[str, NDArray[Any]]]:
    """The arrays of each signal, as views of the arrays of all."""
    alone = {name: array if array.ndim else _alone(name, array, count) for name, array in arrays.items()}
    return [
        {
            name: array[number * (len(array) // count) : (number + 1) * (len(array) // count)] if array.ndim else array
            for name, array in alone.items()
        }
        for number in range(count)
    ]


def _alone(name: str, array: NDArray[Any], count: int) -> NDArray[Any]:
    return _of_streams(array, 1 / count) if name.endswith(_PARAMETERS) else array


def _of_streams(parameters: NDArray[Any], times: float) -> NDArray[Any]:
    given = json.loads(str(parameters))
    return np.array(json.dumps({**given, "streams": round(given["streams"] * times)}))
