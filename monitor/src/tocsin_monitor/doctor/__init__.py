"""Whether everything around the monitor is as it should be."""

from tocsin_monitor.doctor.examination import examine
from tocsin_monitor.doctor.finding import Finding, State

__all__ = ["Finding", "State", "examine"]
