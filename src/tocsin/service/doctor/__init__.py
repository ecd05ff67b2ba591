"""Whether everything around the monitor is as it should be."""

from tocsin.service.doctor.examination import examine
from tocsin.service.doctor.finding import Finding, State

__all__ = ["Finding", "State", "examine"]
