"""Changes that people make. They may be requested from any thread, but run on the engine's thread."""

from collections.abc import Callable
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from tocsin.service.audit import carried
from tocsin.service.engine.detector_replacement import DetectorReplacement
from tocsin.service.engine.engine_state import EngineState

if TYPE_CHECKING:
    from concurrent.futures import Future

P = ParamSpec("P")
T = TypeVar("T")

#: Runs a function on the engine's thread, between two turns.
Ask = Callable[[Callable[[], Any]], "Future[Any]"]


class Changes:
    """Changes of one kind. Methods with `on_engine_thread` may be called from any thread."""

    def __init__(self, state: EngineState, ask: Ask) -> None:
        self._state, self._ask = state, ask
        self._detectors = DetectorReplacement(state)


C = TypeVar("C", bound=Changes)


def on_engine_thread(method: Callable[Concatenate[C, P], T]) -> Callable[Concatenate[C, P], "Future[T]"]:
    """Make a method run on the engine's thread; the call returns a future at once."""

    @wraps(method)
    def ask(self: C, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        return self._ask(carried(partial(method, self, *args, **kwargs)))

    return ask
