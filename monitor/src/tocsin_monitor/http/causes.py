"""Which signal of an event moved first, from what is stored of the first ones that were noticed."""

from collections.abc import Collection, Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np

from tocsin.detection import EventSignal, moving_order
from tocsin_monitor.as_json import time_text
from tocsin_monitor.config import DependsSettings
from tocsin_monitor.store import EventRow, IncidentRow, StoreReader

# How many signals of an event are compared, and how many observations of each are read up to the start of its incident
# and after it. More would keep the reader of a page waiting.
SIGNALS, BEFORE, AFTER = 10, 2500, 500


def causes_of(
    reader: StoreReader, event: EventRow, names: Mapping[int, str], limited: Collection[int] | None,
    depends: Sequence[DependsSettings],
) -> dict[str, Any]:  # fmt: skip
    """The signals in the order in which they began to move, and whether the first one really was the first."""
    if event.kind != "alarm":
        text = "cannot tell: only alarms have values to compare"
        return {"text": text, "first": None, "p": None, "lead_seconds": None, "signals": []}
    members: dict[int, IncidentRow] = {}
    for row in reader.members(event.id, signal_ids=limited, limit=10 * SIGNALS):
        members.setdefault(row.signal, row)
    chosen = list(members.values())[:SIGNALS]
    features = {row.id: row.features for row in reader.signals([one.signal for one in chosen])}
    signals = [_signal(reader, row, names[row.signal], features[row.signal]) for row in chosen]
    pairs = permutations([one.name for one in signals], 2)
    order = moving_order(signals, [pair for pair in pairs if any(one.relates(*pair) for one in depends)])
    return {
        "text": str(order),
        "first": order.first,
        "p": order.p,
        "lead_seconds": order.lead,
        "signals": [
            {
                "signal": one.signal,
                "earliest": time_text(int(one.earliest.astype(np.int64))),
                "latest": time_text(int(one.latest.astype(np.int64))),
                "score": one.score,
                "needed_by": list(one.needed_by),
            }
            for one in order.movers
        ],
    }


def _signal(reader: StoreReader, row: IncidentRow, name: str, features: tuple[str, ...]) -> EventSignal:
    """What is stored of a signal around its incident: of the feature that contributed most to it."""
    seen = reader.observations(row.signal, until=row.start, limit=BEFORE, newest=True)
    seen += reader.observations(row.signal, after=row.start, limit=AFTER)
    worst = max(row.contributions, key=lambda one: row.contributions[one], default=features[0])
    feature = features.index(worst) if worst in features else 0
    known = row.began_earliest is not None and row.began_latest is not None
    return EventSignal(
        name,
        np.array([one.time for one in seen], dtype="datetime64[ns]"),
        np.array([one.judged.value[feature] for one in seen], dtype=np.float64),
        np.array([one.judged.severity if one.judged.warm else np.nan for one in seen], dtype=np.float64),
        np.datetime64(row.start, "ns"),
        np.datetime64(row.end, "ns"),
        (np.datetime64(row.began_earliest, "ns"), np.datetime64(row.began_latest, "ns")) if known else None,
    )
