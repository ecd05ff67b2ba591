"""The operators' pages: no route, setting, metric or status is missing from them, and their examples are accepted."""

import importlib
import json
import pkgutil
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute

import tocsin_monitor.http
from tocsin_monitor.config import Settings, read_settings
from tocsin_monitor.config.fields import every_setting
from tocsin_monitor.config.writing import as_toml
from tocsin_monitor.http import create_app
from tocsin_monitor.http.auth import ADMIN, ANYBODY, OPERATOR, READER, SENDER, WRITER
from tocsin_monitor.http.push import push_formats
from tocsin_monitor.http.requests import Label
from tocsin_monitor.http.status import STATES, SignalMetrics
from tocsin_monitor.metrics import Metrics
from tocsin_monitor.observations import Status
from tocsin_monitor.sinks.notices import _INCIDENT, _SIGNAL, fields_of

DOCS = Path(__file__).parents[2] / "docs"
ROLES = (
    (ANYBODY, "any"),
    (READER, "read"),
    (SENDER, "ingest"),
    (OPERATOR, "operate"),
    (WRITER, "write"),
    (ADMIN, "admin"),
)


def page(name):
    return (DOCS / name).read_text()


def rows(name, columns):
    """The rows of the page's tables that have so many columns, without the marks for code."""
    for line in page(name).splitlines():
        if line.startswith("|") and not line.startswith("|---"):
            cells = [cell.strip() for cell in re.split(r"(?<= )\|(?= )|(?<= )\| ?$", line.removeprefix("|"))][:-1]
            if len(cells) == columns:
                yield [cell.strip("` ") for cell in cells]


def routes():
    """Every route with the role that its endpoint asks for."""
    for module in pkgutil.iter_modules(tocsin_monitor.http.__path__, "tocsin_monitor.http."):
        yield from routes_in(vars(importlib.import_module(module.name)).values())
    yield from routes_in(one.router for one in push_formats())


def routes_in(values):
    for router in values:
        if isinstance(router, APIRouter):
            yield from (route for route in router.routes if isinstance(route, APIRoute) and route.include_in_schema)


def role_of(route):
    wanted = [one for one in route.endpoint.__annotations__.values() if get_args(one)]
    return next((name for annotation, name in ROLES if annotation in wanted), "none")


@pytest.fixture(scope="module")
def described():
    app = create_app(SimpleNamespace(settings=Settings(), store=None, metrics=Metrics()))
    return {(method.upper(), path) for path, methods in app.openapi()["paths"].items() for method in methods}


def documented_routes():
    return {(method, path): role for method, path, role, _ in rows("api.md", 4) if path.startswith("/")}


@pytest.mark.slow
def test_every_route_is_documented_and_no_other(described):
    assert documented_routes().keys() == described
    assert len(described) > 25


@pytest.mark.slow
def test_every_route_is_documented_with_its_role(described):
    documented = documented_routes()
    seen = set()
    for route in routes():
        path = re.sub(r":path\}", "}", route.path)
        for method in route.methods:
            keys = [key for key in ((method, path), (method, f"/api/v1{path}")) if key in documented]
            for key in keys:
                assert documented[key] == role_of(route), key
                seen.add(key)
    assert seen == described


@pytest.mark.slow
def test_every_query_parameter_is_documented(described):
    app = create_app(SimpleNamespace(settings=Settings(), store=None, metrics=Metrics()))
    lines = {(line[0], line[1]): line[3] for line in rows("api.md", 4)}
    for path, methods in app.openapi()["paths"].items():
        for method, operation in methods.items():
            for parameter in operation.get("parameters", []):
                if parameter["in"] == "query":
                    text = lines[method.upper(), path] + (page("api.md") if path.endswith("/stream") else "")
                    assert parameter["name"] in text, (path, parameter["name"])


def default_of(setting):
    field = setting.field
    return "required" if field.is_required() else as_toml(field.get_default(call_default_factory=True), setting)


def settings_rows():
    """The rows of the table: a setting that several kinds of sources, sinks or formats share has one for all."""
    kinds = {}
    for path, setting in every_setting(Settings):
        kind = path[1] if path[0] in ("sources", "sinks", "push") else None
        rest = path[2:] if kind else path[1:]
        kinds.setdefault((path[0], rest, default_of(setting), setting.field.description), []).append(kind)
    every = {family: {kind for key, some in kinds.items() if key[0] == family for kind in some} for family, *_ in kinds}
    for (family, rest, default, meaning), some in kinds.items():
        kind = some[0]
        if len(some) > 1:
            names = ",".join(one.removesuffix("[]") for one in some)
            kind = "*[]" if set(some) == every[family] else f"{{{names}}}[]"
        yield ".".join(filter(None, (family, kind, *rest))), default, meaning


def test_every_setting_is_documented_with_its_default():
    documented = [tuple(row) for row in rows("settings.md", 3) if row[0] != "setting"]
    assert documented == list(settings_rows())


def test_every_metric_explains_itself():
    for family in [*Metrics().registry.collect(), *SignalMetrics().collect()]:
        assert family.documentation.endswith("."), family.name
    for state in STATES:
        assert f"`{state}`" in page("monitor.md")


def test_every_status_has_its_rule():
    statuses = {row[2] for row in rows("monitor.md", 3)}
    assert {status.name.lower() for status in Status} <= statuses


def test_every_label_is_documented():
    for label in get_args(get_args(Label.model_fields["label"].annotation)[0]):
        assert f"`{label}`" in page("api.md")


def test_every_field_of_texts_is_documented():
    documented = {field for fields, _ in rows("notifications.md", 2) for field in re.findall(r"\w+", fields)}
    assert set(fields_of(_INCIDENT, _SIGNAL, "firing", "")) <= documented


MONITOR_PAGES = ("monitor.md", "operations.md", "notifications.md", "connecting.md", "settings.md", "api.md")


@pytest.mark.parametrize("name", MONITOR_PAGES)
def test_examples_of_settings_are_accepted(name, tmp_path):
    blocks = re.findall(r"```toml\n(.*?)```", page(name), flags=re.DOTALL)
    for block in blocks:
        for file in re.findall(r'file = "([^"]*)"', block):
            there = tmp_path / Path(file).name
            there.write_text("postgresql://u:p@h/d" if there.name == "database" else "https://x")
            block = block.replace(file, str(there))
        assert tomllib.loads(block)
        example = tmp_path / "example.toml"
        example.write_text(block)
        read_settings(example, environment={})


def test_examples_of_variables_are_accepted(tmp_path):
    text = page("settings.md") + page("monitor.md")
    found = dict(re.findall(r"(TOCSIN_\w+__\w+)='([^']*)'", text))
    assert len(found) >= 2
    secret = tmp_path / "secret"
    secret.write_text("postgresql://u:p@h/d")
    for name in re.findall(r"`(TOCSIN_\w+__FILE)=", text):
        found[name] = str(secret)
    loaded = read_settings(environment=found)
    assert loaded.settings.storage.url.get_secret_value() == "postgresql://u:p@h/d"


def test_examples_of_json_are_json():
    for block in re.findall(r"```json\n(.*?)```", page("monitor.md") + page("operations.md"), flags=re.DOTALL):
        assert json.loads(block)


def test_sections_that_are_linked_are_there():
    """A link to a section is its heading in small letters, with - for spaces and without punctuation."""
    for name in (*MONITOR_PAGES, "commands.md"):
        for target, section in re.findall(r"\]\((\w+\.md)?#([^)]+)\)", page(name)):
            headings = re.findall(r"^#+ (.*)$", page(target or name), flags=re.MULTILINE)
            known = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert section in known, (name, section)
