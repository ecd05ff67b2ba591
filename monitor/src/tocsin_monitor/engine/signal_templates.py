"""The signal templates in force: those of the settings file, and those that people stored."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from tocsin_monitor.config import Settings, SignalTemplate
from tocsin_monitor.store import TemplateRow

log = logging.getLogger("tocsin.engine")


@dataclass(frozen=True, slots=True)
class KnownTemplate:
    """A template, as it is listed."""

    template: SignalTemplate
    #: As it is stored; None: it is from the settings file.
    stored: TemplateRow | None = None
    #: The template of the file whose place it takes.
    of_file: SignalTemplate | None = None
    #: Why it is not in force.
    problem: str | None = None


def in_force(given: Settings, rows: Sequence[TemplateRow]) -> tuple[Settings, tuple[KnownTemplate, ...]]:
    """The settings with the stored templates, and all templates in the order in which they are tried.

    A stored template that this release or the rest of the settings cannot work with is listed last and not used: the
    monitor has to start all the same.
    """
    usable: dict[str, tuple[SignalTemplate, TemplateRow]] = {}
    problems = []
    for row in rows:
        template = SignalTemplate(match=row.pattern)
        try:
            template = SignalTemplate.model_validate({**row.template, "match": row.pattern})
            given.check_template(template)
            usable[row.pattern] = template, row
        except ValueError as error:
            why = _reason(error)
            log.error("the stored template %r is not used: %s", row.pattern, why)
            problems.append(KnownTemplate(template, row, problem=why))
    settings = given.with_templates(template for template, _ in usable.values())
    of_file = {template.match: template for template in reversed(given.templates)}
    known = []
    for template in settings.templates:
        stored, row_of = usable.get(template.match, (None, None))
        taken = stored is template  # the file may have a pattern twice
        known.append(KnownTemplate(template, row_of, of_file.get(template.match)) if taken else KnownTemplate(template))
    return settings, (*known, *problems)


def _reason(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
    return str(error)
