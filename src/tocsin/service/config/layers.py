"""Settings as given, in layers: each overrides those before it. Layers keep the origin of every value."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pydantic import Field
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict

from tocsin.service.config.settings import Settings

PREFIX = "TOCSIN_"
DELIMITER = "__"


@dataclass(frozen=True)
class Layer:
    """Settings from one place: a file, a variable or an option."""

    origin: str
    tree: Mapping[str, Any]


class _InVariables(Settings, BaseSettings):
    """The settings as `EnvSettingsSource` needs them."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_nested_delimiter=DELIMITER)
    # For a plain dict, pydantic-settings parses the text as JSON if it can, so a number stays a number.
    detector: dict = Field(default_factory=dict)  # type: ignore[type-arg]


def merge(layers: Sequence[Layer]) -> Settings:
    """The settings of all layers; later layers override earlier ones."""
    nothing: Mapping[str, Any] = {}
    return Settings.model_validate(reduce(_override, (layer.tree for layer in layers), nothing))


def _override(below: Mapping[str, Any], above: Mapping[str, Any]) -> Mapping[str, Any]:
    both = {name for name in above if isinstance(above[name], Mapping) and isinstance(below.get(name), Mapping)}
    return {**below, **above, **{name: _override(below[name], above[name]) for name in both}}


def layer_of_variable(name: str, text: str) -> Layer:
    """The layer of one environment variable."""
    source = EnvSettingsSource(_InVariables)
    source.env_vars = {name.lower(): text}
    return Layer(name, source())


def origin_of(layers: Sequence[Layer], path: Sequence[str | int]) -> str | None:
    """Where the value at a path was set; None if nowhere."""
    return next((layer.origin for layer in reversed(layers) if _holds(layer.tree, path)), None)


def _holds(tree: Any, path: Sequence[str | int]) -> bool:
    for step in path:
        try:
            tree = tree[step]
        except (IndexError, KeyError, TypeError):
            return False
    return True
