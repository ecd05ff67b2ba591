"""The store: signals, observations with their verdicts, states of detectors, incidents and outgoing messages."""

from tocsin.service.errors import DamagedError, StoreError, UnfitError
from tocsin.service.store.reader import StoreReader
from tocsin.service.store.rows import (
    AuditRow,
    Ended,
    IncidentFacts,
    IncidentRow,
    Kind,
    MaintenanceRow,
    Message,
    ObservationRow,
    OutboxRow,
    PartRow,
    Pruned,
    ReferenceRow,
    Refused,
    RefusedRow,
    Role,
    SignalRow,
    StateRow,
    TokenRow,
)
from tocsin.service.store.store import Store
from tocsin.service.store.writer import StoreWriter

__all__ = [
    "AuditRow",
    "DamagedError",
    "Ended",
    "IncidentFacts",
    "IncidentRow",
    "Kind",
    "MaintenanceRow",
    "Message",
    "ObservationRow",
    "OutboxRow",
    "PartRow",
    "Pruned",
    "ReferenceRow",
    "Refused",
    "RefusedRow",
    "Role",
    "SignalRow",
    "StateRow",
    "Store",
    "StoreError",
    "StoreReader",
    "StoreWriter",
    "TokenRow",
    "UnfitError",
]
