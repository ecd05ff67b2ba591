"""How people change things: from any thread, on the engine's thread, which alone changes anything."""

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

#: Has the engine do something between two turns.
Ask = Callable[[Callable[[], Any]], "Future[Any]"]


class Changes:
    """Changes of one kind. Its methods with `on_engine_thread` may be called from any thread."""

    def __init__(self, state: EngineState, ask: Ask) -> None:
        self._state, self._ask = state, ask
        self._detectors = DetectorReplacement(state)


C = TypeVar("C", bound=Changes)


def on_engine_thread(method: Callable[Concatenate[C, P], T]) -> Callable[Concatenate[C, P], "Future[T]"]:
    """A method that the engine's thread runs, and that returns at once the future of its result."""

    @wraps(method)
    def ask(self: C, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        return self._ask(carried(partial(method, self, *args, **kwargs)))

    return ask
