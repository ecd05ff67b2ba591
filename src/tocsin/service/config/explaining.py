"""Error messages about settings: pydantic's, with the setting, the value and where it was set."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from tocsin.service.config.fields import ConfigField, path_text, setting_at, settings_of
from tocsin.service.config.layers import Layer, origin_of
from tocsin.service.config.settings import Settings
from tocsin.service.secrecy import hide_in_url

# What pydantic names by the Python type, in TOML's words.
_IN_TOML = {"dict_type": "must be a table", "model_type": "must be a table", "tuple_type": "must be a list"}


def explain(error: ValidationError, layers: Sequence[Layer]) -> list[str]:
    """One line per error: the setting, what it accepts, its value and where it was set. Secrets are left out."""
    lines = []
    for one in error.errors(include_url=False, include_context=False):
        path = one["loc"]
        origin = origin_of(layers, path) if path else None
        text = _message(one["type"], one["msg"], path, one["input"])
        lines.append((f"{path_text(path)}: " if path else "") + text + (f" ({origin})" if origin else ""))
    return lines


def _message(kind: str, message: str, path: tuple[str | int, ...], given: Any) -> str:
    if kind == "extra_forbidden":
        return _unknown(path)
    setting = setting_at(Settings, path)
    text = _IN_TOML.get(kind) or re.sub(r"^(Input|String|Tuple) should", "must", message.removeprefix("Value error, "))
    if kind == "tuple_type" and setting is not None and setting.part is not None:
        text = f"must be a list of tables: in TOML, [[{path_text(path)}]]"
    if _may_be_shown(setting, given) and ", got " not in text:
        text += f", got {given!r}"
    return hide_in_url(text)


def _may_be_shown(setting: ConfigField | None, given: Any) -> bool:
    if setting is None or setting.secret or setting.part is not None:
        return False  # the value may be or contain a secret
    return isinstance(given, (str, int, float, bool))


def _unknown(path: tuple[str | int, ...]) -> str:
    """Suggest a setting. The message leaves out the value, which may belong to a misspelt secret."""
    around = setting_at(Settings, path[:-1])
    known = [setting.name for setting in settings_of(around.part if around and around.part else Settings)]
    near = get_close_matches(str(path[-1]), known, n=1)
    return "there is no such setting" + (
        f": did you mean {near[0]}?" if near else f"; known settings: {', '.join(known)}"
    )
