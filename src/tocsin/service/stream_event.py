"""One event of the stream that pages follow, as it is kept and sent; not an event of incidents."""

from collections.abc import Callable
from typing import Any

from pydantic_core import to_json


class StreamEvent:
    """Something that happened in the monitor. `number` orders the events of one run; the id names the run as well."""

    __slots__ = ("_written", "data", "id", "kind", "number")

    def __init__(self, number: int, identity: str, kind: str, data: dict[str, Any]) -> None:
        self.number, self.id, self.kind, self.data = number, identity, kind, data
        self._written: bytes | None = None

    def limited_to(self, may_see: Callable[[str], bool]) -> "StreamEvent | None":
        """The event for a caller who may see only some signals; None if it is about others."""
        if self.kind == "verdicts":
            seen = {name: latest for name, latest in self.data["signals"].items() if may_see(name)}
            return StreamEvent(self.number, self.id, self.kind, {"signals": seen}) if seen else None
        name = self.data.get("signal", self.data.get("name"))
        return self if name is None or may_see(name) else None

    def written(self) -> bytes:
        """The event as a server-sent event, serialised once for all subscribers."""
        if self._written is None:
            data = to_json(self.data, inf_nan_mode="null")  # one line, because JSON escapes line breaks
            self._written = b"id: %s\nevent: %s\ndata: %s\n\n" % (self.id.encode(), self.kind.encode(), data)
        return self._written
