"""Whether everything around the monitor is as it should be."""

from tocsin_monitor.doctor.checks import Finding, State, examine

__all__ = ["Finding", "State", "examine"]
