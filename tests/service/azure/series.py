"""Series as Azure's clients send them."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

START = datetime(2018, 3, 1, tzinfo=UTC)


def weekly(count: int, seed: int = 0) -> "np.ndarray[Any, Any]":
    """A daily count with a weekly pattern."""
    noise = np.random.default_rng(seed).normal(size=count)
    return np.asarray(32e6 + 3e6 * np.sin(2 * np.pi * np.arange(count) / 7) + 4e5 * noise)


def body(values: Sequence[float] | Any, **options: Any) -> bytes:
    """A request with one point a day."""
    points = [
        {"timestamp": (START + timedelta(days=day)).isoformat(), "value": float(value)}
        for day, value in enumerate(values)
    ]
    return json.dumps({"granularity": "daily", "series": points, **options}).encode()
