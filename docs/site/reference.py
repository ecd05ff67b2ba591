"""The reference pages, made from the code itself."""

import importlib
import tempfile
from collections.abc import Callable, Iterator
from inspect import isclass, isroutine
from pathlib import Path
from typing import Any

#: The modules whose public names the reference lists, with a word on each.
MODULES = {
    "tocsin": "What most programs need.",
    "tocsin.data": "Files, frames and lines of text become signals.",
    "tocsin.detection": "The parts of a detector.",
    "tocsin.evaluation": "Simulations with known truth, and how they are judged.",
    "tocsin_bench.metrics": "Measures for labelled series.",
    "tocsin.spark": "Tocsin on Apache Spark.",
    "tocsin.testing": "Checks that your own scorers, forecasters and views must pass.",
}


def python() -> str:
    """Every public class and function, each once, where most people would look for it."""
    lines, seen = ["# Python\n"], set()
    for name, about in MODULES.items():
        module = importlib.import_module(name)
        shown = []
        for public in getattr(module, "__all__", ()):
            thing = getattr(module, public)
            if (isclass(thing) or isroutine(thing)) and id(thing) not in seen:
                seen.add(id(thing))
                shown.append(f"::: {thing.__module__}.{thing.__qualname__}\n")
        lines += [f"## {name}\n\n{about}\n", *shown]
    return "\n".join(lines)


def commands() -> str:
    """Every command with its options."""
    import click
    from typer.cli import get_docs_for_click

    from tocsin.cli import app
    from tocsin.cli.application import load, whole

    load()
    command = whole(app)
    return get_docs_for_click(obj=command, ctx=click.Context(command, info_name="tocsin"), name="tocsin")


def _monitor(folder: str) -> Any:
    from tocsin_monitor.config import Settings
    from tocsin_monitor.monitor import Monitor
    from tocsin_monitor.store import Store

    return Monitor(Settings(), Store.open(f"sqlite:///{Path(folder) / 'tocsin.db'}"))


def routes() -> str:
    """Every route as the monitor's own description has it."""
    with tempfile.TemporaryDirectory() as folder:
        description = _monitor(folder).app.openapi()
    lines = ["# HTTP routes\n", description["info"]["description"], ""]
    for path, methods in description["paths"].items():
        for method, route in methods.items():
            lines += [f"## `{method.upper()} {path}`\n", route.get("description") or route.get("summary", ""), ""]
            lines += _table(("parameter", "in", "type", "meaning"), _parameters(route))
            lines += _table(
                ("reply", "meaning"), ((code, reply["description"]) for code, reply in route["responses"].items())
            )
    return "\n".join(lines)


def _parameters(route: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for parameter in route.get("parameters", ()):
        schema = parameter.get("schema", {})
        kinds = [kind.get("type", "") for kind in schema.get("anyOf", [schema])]
        needed = " (required)" if parameter.get("required") else ""
        meaning = parameter.get("description") or schema.get("description", "")
        yield f"`{parameter['name']}`", parameter["in"], " or ".join(filter(None, kinds)) + needed, meaning


def metrics() -> str:
    """Every metric that the monitor gives to Prometheus."""
    from tocsin_monitor.http.status import SignalMetrics
    from tocsin_monitor.metrics import Metrics

    registry = Metrics().registry
    own = {one.name + "_total" * (one.type == "counter"): one for one in registry.collect()}
    labels = {name: registry._names_to_collectors[name]._labelnames for name in own}
    of_signals = {one.name: one for one in SignalMetrics().collect()}
    labels |= {name: one._labelnames for name, one in of_signals.items()}
    lines = ["# Metrics of the monitor\n"]
    for address, families in (("/metrics", own), ("/metrics/signals", of_signals)):
        rows = ((f"`{name}`", one.type, ", ".join(labels[name]), one.documentation) for name, one in families.items())
        lines += [f"## `GET {address}`\n", *_table(("metric", "type", "labels", "meaning"), rows)]
    return "\n".join(lines)


def _table(heads: tuple[str, ...], rows: Any) -> list[str]:
    body = [f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *body, ""] if body else []


PAGES: dict[str, Callable[[], str]] = {"python": python, "commands": commands, "routes": routes, "metrics": metrics}
