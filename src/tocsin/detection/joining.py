"""Joins the states of single signals into one, and back: storing and restoring them together is much faster."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.detection.storage import damage_told, packed, read_header

Arrays = Mapping[str, NDArray[Any]]

# A scorer's header in a state, besides the arrays of its streams.
_PARAMETERS = "/parameters"


def joined(states: Sequence[Arrays]) -> dict[str, NDArray[Any]]:
    """The state of a fleet from the states of its signals, which must share their settings; times are left out.

    The signals are named by their numbers.
    """
    headers = [read_header(state) for state in states]
    with damage_told():
        names = [name for name in states[0] if name != "header"]
        if any(len(header["signals"]) != 1 for header in headers):
            raise ValueError("each state must be of one signal")
        if any(state.keys() != states[0].keys() for state in states):
            raise ValueError("all states must hold the same arrays")
        made = {name: value for name, value in headers[0].items() if name not in ("format", "incidents", "extra")}
        incidents = _joined_incidents([header["incidents"] for header in headers])
        told = {**made, "signals": [str(number) for number in range(len(states))], "incidents": incidents, "extra": {}}
        return packed(told, {name: _joined_array(name, [state[name] for state in states]) for name in names})


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
