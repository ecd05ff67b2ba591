"""The monitor: signals in, alarms out, a live page, and nothing lost."""

__version__ = "0.1.0"
