"""Groups of command-line options that several commands share."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Command = Callable[..., None]


def keyword(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    """A parameter of a command; the annotation has its type and its option."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def in_place_of(
    group: str, parameters: Sequence[inspect.Parameter], gather: Callable[[Mapping[str, Any]], Any]
) -> Callable[[Command], Command]:
    """Replace the parameter `group` of a command with these; the command gets what `gather` makes of them."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def wrapped(**given: Any) -> None:
            chosen = {one.name: given.pop(one.name) for one in parameters}
            command(**given, **{group: gather(chosen)})

        own = inspect.signature(command, eval_str=True).parameters.values()
        shown = [other for one in own for other in (parameters if one.name == group else [one])]
        shown = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in shown]
        wrapped.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        wrapped.__annotations__ = {one.name: one.annotation for one in shown}
        return wrapped

    return decorate
