"""Kinds of sources and sinks: built-in ones, and those of other packages.

A kind is a class of settings that names its implementation, which is imported only when configured. Everything that
lists kinds (settings, their validation, the example and the page of settings, the engine) reads them here.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import Field, create_model

from tocsin_monitor.config.rules import DeliveryRules
from tocsin_monitor.config.section import Name, Seconds, Section


class KindSettings(Section):
    """The settings of a source or a sink."""

    #: The implementation, as "module:Class"; imported when configured.
    implementation: ClassVar[str]
    #: The extra that it needs, if any.
    extra: ClassVar[str | None] = None
    name: Name

    @classmethod
    def load(cls) -> Any:
        """The implementation class."""
        module, _, name = cls.implementation.partition(":")
        try:
            return getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            if cls.extra is None:
                raise
            raise ValueError(f"this needs an extra: pip install 'tocsin[{cls.extra}]' ({error})") from error


class SourceSettings(KindSettings):
    """Where observations come from."""

    name: Name = Field(description="Its name in metrics and logs.", examples=["source"])


class SinkSettings(DeliveryRules, KindSettings):
    """Where incidents are sent."""

    name: Name = Field(description="Its name in metrics and logs.", examples=["sink"])
    timeout: Seconds = Field(default=10.0, description="How long to wait for a reply.")


S = TypeVar("S", bound=KindSettings)


class KindGroup(Section, Generic[S]):
    """All sources, or all sinks: one list per kind."""

    def each(self) -> Iterator[tuple[str, S]]:
        """All that are configured, each with its place: `mqtt[0]`."""
        for kind in type(self).model_fields:
            for number, one in enumerate(getattr(self, kind)):
                yield f"{kind}[{number}]", one


def group_of(name: str, about: str, points: str, base: type[S], built_in: Mapping[str, type[S]]) -> type[KindGroup[S]]:
    """A group with the built-in kinds and those that packages register as entry points.

    Built-in names take precedence.
    """
    kinds = dict(built_in)
    for point in entry_points(group=points):
        if not point.name.isidentifier():
            raise ValueError(f"a name in {points} must consist of letters, digits and _, got {point.name!r}")
        kind = point.load()
        if not (isinstance(kind, type) and issubclass(kind, base)):
            raise TypeError(f"the entry point {point.name!r} of {points} must be a {base.__name__}, got {kind!r}")
        kinds.setdefault(point.name, kind)
    fields: dict[str, Any] = {
        kind: (tuple[settings, ...], Field(default=(), description=(settings.__doc__ or "").partition("\n")[0]))  # type: ignore[valid-type]
        for kind, settings in kinds.items()
    }
    return create_model(name, __base__=KindGroup[base], __doc__=about, **fields)  # type: ignore[valid-type]
