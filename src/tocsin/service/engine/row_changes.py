"""A signal with other settings. Changes and trials follow the same rules, so that a trial tries what a change does."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from tocsin.service.config import Settings
from tocsin.service.engine.new_signals import check_settings, new_row
from tocsin.service.store import SignalRow


@dataclass(frozen=True, slots=True)
class Affected:
    """The signals to which a template applies, by name."""

    #: Those with the settings that templates gave them so far.
    signals: tuple[str, ...]
    #: Those with other settings.
    own: tuple[str, ...]


def configured(settings: Settings, row: SignalRow, detector: dict[str, Any]) -> SignalRow:
    """A signal with these settings of its detector; its template supplies those not given."""
    given = new_row(settings, row.name, row.features, detector)
    return replace(row, settings={**given.settings, **_interval(row)})


def changed(row: SignalRow, detector: dict[str, Any]) -> SignalRow:
    """A signal with these settings of its detector, and its others as they are."""
    settings = {**row.settings, **detector, **_interval(row)}
    check_settings(settings, row.features)
    return replace(row, settings=settings)


def templated(settings: Settings, row: SignalRow) -> SignalRow:
    """A signal with the settings that a new one of its name gets, except its features and its aggregation."""
    made = _as_new(settings, row)
    check_settings(made.settings, made.features)
    return made


def affected(before: Settings, after: Settings, match: str, rows: Iterable[SignalRow]) -> Affected:
    """The signals to which the template with this pattern applies, by the settings after it is changed."""
    names: dict[bool, list[str]] = {True: [], False: []}
    for row in rows:
        template = after.template_for(row.name)
        if template is not None and template.match == match:
            made = _as_new(before, row)
            same = (made.settings, made.silent_after, made.unit) == (row.settings, row.silent_after, row.unit)
            names[same].append(row.name)
    return Affected(tuple(sorted(names[True])), tuple(sorted(names[False])))


def _as_new(settings: Settings, row: SignalRow) -> SignalRow:
    template = settings.template_for(row.name)
    detector = {**settings.detector, **({} if template is None else template.detector), **_interval(row)}
    return replace(
        row,
        settings=detector,
        silent_after=None if template is None else template.silent_after,
        unit=None if template is None else template.unit,
        template=None if template is None else template.match,
    )


def _interval(row: SignalRow) -> dict[str, float]:
    """Stored observations were aggregated with this interval, so it stays."""
    return {} if row.every is None else {"interval": row.every}
