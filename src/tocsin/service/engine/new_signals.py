"""New signals: what they are going to be, from what is given and from the settings."""

import json
import math
import time
from collections.abc import Sequence
from typing import Any

from tocsin.service.config import Settings, check_detector
from tocsin.service.engine.stages import values_of
from tocsin.service.errors import RefusedError
from tocsin.service.observations import MOST_FEATURES, Observation, check_name
from tocsin.service.store import SignalRow


def row_of_first(settings: Settings, first: Observation) -> SignalRow:
    """The signal that appears with its first observation; RefusedError if it cannot, or if that would not fit."""
    template = settings.template_for(first.signal)
    features: Sequence[str] | None = first.features
    if template is not None and template.features is not None:
        features = template.features
    elif features is None and len(first.values) > 1:
        features = [f"feature {number}" for number in range(1, len(first.values) + 1)]
    row = new_row(settings, first.signal, features)
    values_of(first, row.features)
    return row


def new_row(
    settings: Settings,
    name: str,
    features: Sequence[str] | None = None,
    detector: dict[str, Any] | None = None,
    silent_after: float | None = None,
    unit: str | None = None,
) -> SignalRow:
    """A signal as it is going to be stored: what is not given comes from its template. RefusedError if it is wrong."""
    try:
        check_name(name)
    except ValueError as error:
        raise RefusedError(str(error)) from None
    if silent_after is not None and not (0 < silent_after < math.inf):
        raise RefusedError(f"silent_after must be more than 0 seconds, got {silent_after!r}")
    template = settings.template_for(name)
    if features is None and template is not None:
        features = template.features
    names = check_features(["value"] if features is None else features)
    every = None if template is None else template.every
    chosen = {**settings.detector_for(name), **(detector or {}), **({} if every is None else {"interval": every})}
    try:
        json.dumps(chosen, allow_nan=False)
        check_detector(chosen, names)
    except (TypeError, ValueError) as error:
        raise RefusedError(str(error)) from error
    return SignalRow(
        id=0,
        name=name,
        features=names,
        settings=chosen,
        silent_after=silent_after if silent_after is not None or template is None else template.silent_after,
        unit=check_text("unit", unit) if unit is not None or template is None else template.unit,
        template=None if template is None else template.match,
        created=time.time_ns(),
        every=every,
        aggregate="mean" if template is None else template.aggregate,
    )


def check_features(features: Sequence[str]) -> tuple[str, ...]:
    """The names of features, or RefusedError."""
    names = tuple(features)
    if not 0 < len(names) <= MOST_FEATURES or len(set(names)) != len(names):
        raise RefusedError(f"features must be 1 to {MOST_FEATURES} different names, got {list(names)!r}")
    for name in names:
        try:
            check_name(name)
        except ValueError as error:
            raise RefusedError(str(error).replace("a signal's name", "a feature's name")) from None
    return names


def check_text(what: str, text: str | None, longest: int = 200) -> str | None:
    """A text that every store can keep, or RefusedError."""
    if text is not None and (len(text) > longest or "\0" in text or not _encodable(text)):
        raise RefusedError(f"{what} must be a text of at most {longest} characters, without NUL, got {text[:40]!r}")
    return text


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
