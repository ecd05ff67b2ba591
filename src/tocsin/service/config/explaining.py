"""What is wrong with settings, in words for who wrote them."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from tocsin.service.config.fields import Setting, path_text, setting_at, settings_of
from tocsin.service.config.layers import Layer, origin_of
from tocsin.service.config.settings import Settings


def explain(error: ValidationError, layers: Sequence[Layer]) -> list[str]:
    """A line for each mistake: which setting, what is accepted, what was given and where. Secrets are left out."""
    lines = []
    for one in error.errors(include_url=False, include_context=False):
        path = one["loc"]
        origin = origin_of(layers, path) if path else None
        text = _message(one["type"], one["msg"], path, one["input"])
        lines.append((f"{path_text(path)}: " if path else "") + text + (f" ({origin})" if origin else ""))
    return lines


def _message(kind: str, message: str, path: tuple[str | int, ...], given: Any) -> str:
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        return _unknown(path)
    # What our own checks raise is said as it is; what pydantic says is put in the words of the other errors.
    text = message.removeprefix("Value error, ").replace("Input should be", "must be").replace("Input should", "must")
    setting = setting_at(Settings, path)
    if _may_be_shown(setting, given) and ", got " not in text:
        text += f", got {given!r}"
    return text


def _may_be_shown(setting: Setting | None, given: Any) -> bool:
    if setting is None or setting.secret or setting.part is not None:
        return False  # it may be a secret, or hold one
    return isinstance(given, (str, int, float, bool))


def _unknown(path: tuple[str | int, ...]) -> str:
    """What was meant, perhaps. The value is not repeated: it may be a misspelt secret's."""
    around = setting_at(Settings, path[:-1])
    known = [setting.name for setting in settings_of(around.part if around and around.part else Settings)]
    near = get_close_matches(str(path[-1]), known, n=1)
    return "there is no such setting" + (f": did you mean {near[0]}?" if near else f"; there are {', '.join(known)}")
