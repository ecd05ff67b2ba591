"""How sources and sinks are doing."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated

from tocsin_monitor.fields import Shown, Time


@dataclass
class SinkHealth:
    """The health of a sink."""

    last_success: Time | None = None
    last_error: str | None = None
    last_error_time: Time | None = None


@dataclass
class SourceHealth(SinkHealth):
    """The health of a source, or of a format that others push."""

    received: Annotated[int, Shown("How many observations came from it since the monitor started.")] = 0
    skipped: Annotated[int, Shown("How many things that are no observation, and never will be, it brought.")] = 0
    left_out: Annotated[
        Counter[str], Shown("How many points are no observations, such as native histograms, by what they are.")
    ] = field(default_factory=Counter)
