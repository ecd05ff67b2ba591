"""How errors are told in logs and in what is said about sources and sinks."""

from tocsin.service.errors import MonitorError


def error_text(error: Exception) -> str:
    """Ours are sentences; of other exceptions the kind says as much as the text."""
    return str(error) if isinstance(error, MonitorError) else f"{type(error).__name__}: {error}"
