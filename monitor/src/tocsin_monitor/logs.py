"""The log, with a limit on repeated lines and without secrets."""

import json
import logging
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from tocsin_monitor.config import Settings
from tocsin_monitor.config.fields import secrets_in
from tocsin_monitor.secrecy import hide, hide_in_url, hide_tokens

WINDOW = 60.0  # seconds
TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
# What every record has; all else was given with it, by `extra`.
_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class RepeatLimit(logging.Filter):
    """Limits the lines per minute from each place in the program; the next line says how many were left out."""

    def __init__(self, most: int = 20, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._most, self._clock = most, clock
        self._seen: dict[tuple[str, int], tuple[float, int, int]] = {}  # since when, how many passed, how many did not

    def filter(self, record: logging.LogRecord) -> bool:
        now = self._clock()
        since, seen, left_out = self._seen.get((record.pathname, record.lineno), (now, 0, 0))
        if now - since >= WINDOW:
            if left_out:
                record.msg, record.args = f"{record.getMessage()} (and {left_out} more like it left out)", ()
            since, seen, left_out = now, 0, 0
        passes = seen < self._most
        self._seen[record.pathname, record.lineno] = (since, seen + passes, left_out + (not passes))
        return passes


class PlainFormatter(logging.Formatter):
    """A line of text, without secrets."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        super().__init__(TEXT)
        self._secrets = tuple(secrets)

    def format(self, record: logging.LogRecord) -> str:
        return self.without_secrets(super().format(record))

    def without_secrets(self, text: str) -> str:
        """The text without what is secret in the settings, in addresses, and without tokens."""
        return hide_tokens(hide_in_url(hide(text, self._secrets)))


class JsonFormatter(PlainFormatter):
    """A JSON object in one line: time, level, logger, message, what was given with `extra`, and the traceback."""

    def format(self, record: logging.LogRecord) -> str:
        said = {
            "time": f"{datetime.fromtimestamp(record.created, UTC):%Y-%m-%dT%H:%M:%S}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{name: value for name, value in vars(record).items() if name not in _USUAL},
        }
        if record.exc_info:
            said["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            said["stack"] = self.formatStack(record.stack_info)
        # Each text by itself: a secret with a quotation mark looks different once it is JSON.
        return json.dumps({name: self._shown(value) for name, value in said.items()}, ensure_ascii=False)

    def _shown(self, value: object) -> object:
        if value is None or isinstance(value, (bool, int, float)):
            return value
        return self.without_secrets(str(value))


def start_logging(settings: Settings) -> None:
    """Log to standard error."""
    formatter = (JsonFormatter if settings.log_format == "json" else PlainFormatter)(secrets_in(settings))
    handler = logging.StreamHandler()
    handler.setFormatter(formatter)
    handler.addFilter(RepeatLimit())
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler])
    if settings.log_level == "info":
        # The monitor logs its own start and stop, so those of the server are not needed.
        logging.getLogger("uvicorn").setLevel("WARNING")
