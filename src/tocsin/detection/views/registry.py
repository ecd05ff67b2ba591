"""Views by name."""

from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from tocsin import checks
from tocsin.detection.views.error import ErrorView
from tocsin.detection.views.level import LevelView
from tocsin.detection.views.movement import MovementView
from tocsin.detection.views.relation import RelationView
from tocsin.detection.views.shape import ShapeView
from tocsin.detection.views.view import View

ENTRY_POINTS = "tocsin.views"

_BUILT_IN: dict[str, Callable[[], View]] = {
    view.name: view for view in (ErrorView, ShapeView, MovementView, LevelView, RelationView)
}


@cache
def _installed() -> dict[str, EntryPoint]:
    """The views of other packages; names of this package take precedence."""
    return {point.name: point for point in entry_points(group=ENTRY_POINTS) if point.name not in _BUILT_IN}


def available_views() -> list[str]:
    """The names of all views, those of other packages last.

    >>> available_views()[:5]
    ['error', 'shape', 'movement', 'level', 'relation']
    """
    return [*_BUILT_IN, *_installed()]


def make_view(name: str) -> View:
    """The view of this name.

    >>> [stream.name for stream in make_view("movement").streams]
    ['quiet-48', 'restless-48', 'step']
    """
    checks.choice("views", name, available_views())
    if name in _BUILT_IN:
        return _BUILT_IN[name]()
    view = _installed()[name].load()()
    if not isinstance(view, View):
        raise TypeError(f"the entry point {name!r} of {ENTRY_POINTS} must be a View, got {view!r}")
    return view
