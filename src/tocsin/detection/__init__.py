"""Detectors: values in; verdicts, alarms and incidents out."""

from tocsin.arrays import pack_arrays, unpack_arrays
from tocsin.detection.batch import detect_signal, detect_signals
from tocsin.detection.detector import Detector, ResolutionWarning
from tocsin.detection.fleet import Fleet
from tocsin.detection.frames import missing_times
from tocsin.detection.incidents.audit import OF_STRETCHES, Audit, audit_together, rate_bounds
from tocsin.detection.incidents.budget import POOL, PROPOSED, IncidentBudget, Proposal
from tocsin.detection.incidents.incident import (
    MUCH_SEVERER,
    Ending,
    Incident,
    alike,
    ending_of,
    ordinal,
    rarity,
)
from tocsin.detection.incidents.verdict import Verdict, Verdicts
from tocsin.detection.order import EventSignal, Mover, MovingOrder, moving_order
from tocsin.detection.peers import PEERS_LEARNED, against_peers, peer_features, with_peers
from tocsin.detection.results import Result, Results, verdict_columns
from tocsin.detection.settings.alarm_rate import SECONDS, parse_budget
from tocsin.detection.settings.declaration import declared
from tocsin.detection.settings.detector_settings import NONCONFORMITIES, DetectorSettings, named_forecasters
from tocsin.detection.state.memory import memory_bytes, working_bytes
from tocsin.detection.state.storage import arrays_from_bytes, arrays_to_bytes
from tocsin.detection.views.view import length_text
from tocsin.detection.watching import Watch

__all__ = [
    "MUCH_SEVERER",
    "NONCONFORMITIES",
    "OF_STRETCHES",
    "PEERS_LEARNED",
    "POOL",
    "PROPOSED",
    "SECONDS",
    "Audit",
    "Detector",
    "DetectorSettings",
    "Ending",
    "EventSignal",
    "Fleet",
    "Incident",
    "IncidentBudget",
    "Mover",
    "MovingOrder",
    "Proposal",
    "ResolutionWarning",
    "Result",
    "Results",
    "Verdict",
    "Verdicts",
    "Watch",
    "against_peers",
    "alike",
    "arrays_from_bytes",
    "arrays_to_bytes",
    "audit_together",
    "declared",
    "detect_signal",
    "detect_signals",
    "ending_of",
    "length_text",
    "memory_bytes",
    "missing_times",
    "moving_order",
    "named_forecasters",
    "ordinal",
    "pack_arrays",
    "parse_budget",
    "peer_features",
    "rarity",
    "rate_bounds",
    "unpack_arrays",
    "verdict_columns",
    "with_peers",
    "working_bytes",
]
