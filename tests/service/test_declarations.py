"""One declaration of an incident, an event and a signal: the table, the row, the JSON, OpenAPI and the page agree."""

import re
from dataclasses import fields
from types import SimpleNamespace

import pytest
from pydantic import BaseModel
from sqlalchemy import Table

from tests.service.store.helpers import incident
from tocsin_monitor.as_json import incident_json, json_of
from tocsin_monitor.engine import SignalStatus
from tocsin_monitor.http import replies, signals, static_files
from tocsin_monitor.store import EventRow, IncidentFacts, IncidentRow, MaintenanceRow, ReferenceRow, SignalRow, schema

PAGE = {
    "Signal": replies.SignalOut, "Reference": replies.ReferenceOut, "Incident": replies.IncidentOut,
    "Event": replies.EventDetails, "Member": replies.MemberOut, "Suspect": replies.SuspectOut,
    "Causes": replies.CausesOut, "Mover": replies.MoverOut,
    "History": replies.History, "Audit": replies.AuditOut, "Details": replies.Details,
    "Template": replies.TemplateSettings, "Maintenance": replies.MaintenanceOut,
}  # fmt: skip


def page_types() -> dict[str, dict[str, str]]:
    """The types that the page relies on: of each, its properties and their types."""
    text = (static_files.FOLDER / "js" / "types.js").read_text()
    found: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        if named := re.match(r" \* @typedef \{object\} (\w+)", line):
            found[named[1]] = properties = {}
        elif one := re.match(r" \* @property \{(.+?)\} \[?(\w+)\]?(?: |$)", line):
            properties[one[2]] = one[1]
    return found


@pytest.mark.parametrize(
    ("table", "row"),
    [
        (schema.signals, SignalRow),
        (schema.incidents, IncidentRow),
        (schema.events, EventRow),
        (schema.maintenance, MaintenanceRow),
    ],
)
def test_a_table_has_the_columns_of_its_row(table: Table, row: type) -> None:
    assert {column.name for column in table.columns} == {field.name for field in fields(row)}


@pytest.mark.parametrize(
    ("model", "row", "left_out"),
    [
        (replies.IncidentOut, IncidentRow, ()),
        (replies.SignalOut, SignalStatus, ("id",)),
        (replies.ReferenceOut, ReferenceRow, ("signal",)),
        (replies.MaintenanceOut, MaintenanceRow, ()),
    ],
)
def test_a_model_has_what_the_json_has(model: type[BaseModel], row: type, left_out: tuple[str, ...]) -> None:
    one = SimpleNamespace(**{field.name: None for field in fields(row)} | {"contributions": {}, "feature_p": {}})
    more = {replies.MaintenanceOut: {"occurrences"}, replies.IncidentOut: {"level"}}.get(model, set())
    assert set(model.model_fields) - more == set(json_of(row, one, left_out))
    assert len(model.model_fields) - len(more) == len(fields(row)) - len(left_out)


def test_an_incident_in_json_is_valid_by_its_model() -> None:
    facts = {field.name: getattr(incident(1, 10**18), field.name) for field in fields(IncidentFacts)}
    people = {"acknowledged": 10**18, "acknowledged_by": "ana", "snoozed_until": None, "label": None, "note": None}
    row = IncidentRow(**facts, **people, id=7, excluded=False, withheld=False)
    written = incident_json(row, "pump")
    read = {**written, "suspects": list(written["suspects"])}
    assert replies.IncidentOut.model_validate(written).model_dump() == read
    assert list(written)[:3] == ["id", "signal", "kind"]


def test_columns_of_signals_are_fields_of_a_signal() -> None:
    assert set(signals.Overview.model_fields) - {"pace"} <= set(replies.SignalOut.model_fields)


@pytest.mark.parametrize("name", PAGE)
def test_the_page_knows_every_field(name: str) -> None:
    schema_of = PAGE[name].model_json_schema()
    known = page_types()[name]
    assert set(schema_of["properties"]) - set(known) == set()
    for field, about in schema_of["properties"].items():
        if {"type": "null"} in about.get("anyOf", ()):
            assert "null" in known[field], f"{name}.{field} may be null"
