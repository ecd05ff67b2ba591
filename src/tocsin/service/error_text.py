"""The text of an error, for logs and for the status of sources and sinks."""

from tocsin.service.errors import MonitorError


def error_text(error: Exception) -> str:
    """The message of the monitor's own errors; for others, the type too, since it says as much as the message."""
    return str(error) if isinstance(error, MonitorError) else f"{type(error).__name__}: {error}"
