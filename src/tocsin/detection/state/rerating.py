"""Changes the alarm rate of a detector's state and keeps what it has learned."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.conformal import SlidingWindow
from tocsin.constants import constants
from tocsin.detection.fleet import Fleet
from tocsin.detection.settings.detector_settings import DetectorSettings
from tocsin.detection.state.storage import read_header, reports_damage, settings_of

_RANKING = "pipeline/ranking/"
_FINAL = f"{_RANKING}final/"
State = Mapping[str, NDArray[Any]]


def rerated(state: State, alarm_rate: float | str | None) -> dict[str, NDArray[Any]]:
    """The state of the detector with this alarm rate from now on.

    The forecaster, the views and their pasts continue unchanged. If blocks get longer, the highest evidence of past
    blocks is combined. If they get shorter, each is kept as it is, which requires more evidence until newer ones
    replace it. The audit restarts, because the promise is another.
    """
    header = read_header(state)
    before = settings_of(header, forecaster=None, threads=1)
    after = replace(before, alarm_rate=alarm_rate)
    fresh = Fleet.of(header["signals"], after).state(time=header["extra"].get("time"))
    with reports_damage():
        # Everything that does not depend on the rate is kept, and so is everything of the same shape.
        kept = {
            name: array
            for name, array in state.items()
            if not name.startswith(("audit/", _FINAL)) and name in fresh and array.shape == fresh[name].shape
        }
        # The paper's detector has neither: nothing that it learns depends on the rate.
        memory = {} if after.is_paper else {**_memory(state, before, after), **_final(state, after.sizes.final)}
        return {**fresh, **kept, **memory, "header": _header(state, fresh)}


def _memory(state: State, before: DetectorSettings, after: DetectorSettings) -> dict[str, NDArray[Any]]:
    """The highest evidence of past blocks, converted to blocks of another length and number."""
    from tocsin.detection.incidents import rules  # it loads numba, which imports must not

    counters, blocks = state[f"{_RANKING}counters"].copy(), state[f"{_RANKING}blocks"]
    there, room = blocks.shape[1], after.sizes.blocks
    together = max(1, round(after.sizes.block / before.sizes.block))
    made = np.zeros((len(blocks), room))
    stand_in = rules.usual_maxima(after.sizes.block, room, constants())
    made[:, : stand_in.size] = stand_in
    for signal, row in enumerate(blocks):
        count = int(counters[signal, rules.BLOCKS])
        # The oldest first: once it is full, the newest replaces the oldest.
        past = row[:count] if count < there else np.roll(row, -(count % there))
        past = past[len(past) % together :].reshape(-1, together).max(axis=1)[-room:] if len(past) else past
        made[signal, : len(past)] = past
        counters[signal, rules.BLOCKS] = len(past)
    counters[:, rules.IN_BLOCK] = np.minimum(counters[:, rules.IN_BLOCK], after.sizes.block - 1)
    return {f"{_RANKING}counters": counters, f"{_RANKING}blocks": made}


def _final(state: State, window: int) -> dict[str, NDArray[Any]]:
    """The calibration set for p, converted to a window of another length."""
    old = SlidingWindow.from_state(
        {name.removeprefix(_FINAL): one for name, one in state.items() if name.startswith(_FINAL)}
    )
    new = old
    if old.window != window:
        new = SlidingWindow(old.streams, window=window)
        pasts = [old.calibration_set(stream)[0][::-1] for stream in range(old.streams)]  # the oldest first
        scores = np.full((max(map(len, pasts)), old.streams), np.nan)
        for stream, past in enumerate(pasts):
            scores[len(scores) - len(past) :, stream] = past
        new.run(scores)
    return {f"{_FINAL}{name}": array for name, array in new.state().items()}


def _header(state: State, fresh: State) -> NDArray[np.uint8]:
    """The header of the state: other settings, the same incidents."""
    old, new = (json.loads(one["header"].tobytes()) for one in (state, fresh))
    return np.array(bytearray(json.dumps({**old, "settings": new["settings"]}).encode()), dtype=np.uint8)
