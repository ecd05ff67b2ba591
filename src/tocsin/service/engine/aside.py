"""Signals whose detectors cannot be rebuilt: they are set aside, and all others go on."""

from dataclasses import dataclass

from tocsin.service.engine.status import SignalStatus
from tocsin.service.store import IncidentRow, ReferenceRow, SignalRow

NOTHING = float("nan")


@dataclass(frozen=True)
class Aside:
    """A signal that is set aside, and why. What is observed of it is kept, and judged by nobody."""

    row: SignalRow
    reason: str
    reference: ReferenceRow | None = None
    #: Its incidents that were open when it was set aside.
    incidents: tuple[IncidentRow, ...] = ()

    @property
    def name(self) -> str:
        """Its name."""
        return self.row.name

    @property
    def told(self) -> str:
        """Why nothing can be asked of its detector, and what can be done."""
        return f"signal {self.name!r} is set aside ({self.reason}): configure it, reset it or remove it"

    def status(self) -> SignalStatus:
        """What is known of it."""
        row = self.row
        promise = row.settings.get("promise")
        return SignalStatus(
            id=row.id,
            name=row.name,
            features=row.features,
            unit=row.unit,
            template=row.template,
            alarm_rate=NOTHING,
            promise=promise if promise == "observations" else "incidents",
            last_time=None,
            last_arrival=None,
            value=(NOTHING,) * len(row.features),
            p=NOTHING,
            severity=NOTHING,
            alarm=False,
            warm=False,
            observations=0,
            warm_up=0,
            own_past_after=0,
            silent=False,
            incident=self.incidents[-1].id if self.incidents else None,
            recent=(),
            reference=self.reference,
            aside=self.reason,
        )
