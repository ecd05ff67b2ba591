"""Everything durable: signals, observations and verdicts, detectors' states, incidents and what is to be told."""

from tocsin.service.errors import StoreError
from tocsin.service.store.reader import Reader
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
    Pruned,
    ReferenceRow,
    Role,
    SignalRow,
    StateRow,
    TokenRow,
)
from tocsin.service.store.store import Store
from tocsin.service.store.writer import Writer

__all__ = [
    "AuditRow",
    "Ended",
    "IncidentFacts",
    "IncidentRow",
    "Kind",
    "MaintenanceRow",
    "Message",
    "ObservationRow",
    "OutboxRow",
    "Pruned",
    "Reader",
    "ReferenceRow",
    "Role",
    "SignalRow",
    "StateRow",
    "Store",
    "StoreError",
    "TokenRow",
    "Writer",
]
