"""How people change templates."""

import json
import time

from tocsin.service.config import Settings, SignalTemplate
from tocsin.service.engine.changes import Changes, on_engine_thread
from tocsin.service.engine.new_signals import check_features, check_text
from tocsin.service.engine.row_changes import Affected, affected
from tocsin.service.engine.templates import KnownTemplate
from tocsin.service.errors import RefusedError
from tocsin.service.observations import check_name
from tocsin.service.store import TemplateRow

#: A limit, because each new signal is compared with all templates.
MOST_TEMPLATES = 500


class TemplateChanges(Changes):
    """Changes of stored templates. Signals that exist stay as they are."""

    @property
    def known(self) -> tuple[KnownTemplate, ...]:
        """All templates, in the order in which they are tried; from any thread."""
        return self._state.templates

    @on_engine_thread
    def put(self, template: SignalTemplate, by: str = "") -> Affected:
        """Store a template in place of the one with the same pattern; returns the signals to which it applies."""
        state = self._state
        before = state.settings
        check_template(before, template)
        content = template.model_dump(mode="json", exclude={"match"}, exclude_defaults=True)
        with state.store.transaction() as writer:
            writer.put_template(TemplateRow(template.match, content, time.time_ns(), by))
            rows = writer.templates()
            if len(rows) > MOST_TEMPLATES:
                raise RefusedError(f"at most {MOST_TEMPLATES} templates can be stored: remove some first")
        state.use_templates(rows)
        return affected(before, state.settings, template.match, state.rows())

    @on_engine_thread
    def remove(self, match: str) -> Affected:
        """Remove a stored template; returns the signals to which it applied.

        If the settings file has a template with the same pattern, that one applies again.
        """
        state = self._state
        before = state.settings
        with state.store.transaction() as writer:
            writer.remove_template(match)
            rows = writer.templates()
        state.use_templates(rows)
        return affected(before, before, match, state.rows())


def check_template(settings: Settings, template: SignalTemplate) -> None:
    """Check a template as one of a file is checked, and that it can be stored; or RefusedError."""
    try:
        check_name(template.match)  # it is part of an address, and no other pattern matches a name
    except ValueError as error:
        raise RefusedError(str(error).replace("a signal's name", "match")) from None
    try:
        settings.check_template(template)
        json.dumps(template.detector, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise RefusedError(str(error)) from None
    check_text("unit", template.unit)
    if template.features is not None:
        check_features(template.features)
