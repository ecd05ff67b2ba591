"""The monitor: signals in, alarms out, a live page, and nothing lost."""
