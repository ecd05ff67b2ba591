"""`tocsin import`: history into a running monitor."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tocsin.cli.application import Exit, app, progress, say
from tocsin.cli.options import takes_reading_options, text_in_options
from tocsin_monitor.cli.client import Url, address_of, answer, client_of
from tocsin_monitor.cli.monitoring import Config, explained, read
from tocsin_monitor.errors import MonitorError

if TYPE_CHECKING:
    import httpx

# How often to ask for progress, in seconds.
ASK_EVERY = 0.5
# The monitor reads and stores a file before it answers.
PATIENCE = 3600.0


@app.command("import")
@takes_reading_options(sheets=False)
def import_history(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", exists=True, dir_okay=False, help="Files as `tocsin detect` reads them."),
    ],
    signal: Annotated[
        str,
        typer.Option(
            "--signal",
            metavar="NAME",
            help="The signal. {name} stands for its id in the file, or the file's name.",
        ),
    ] = "{name}",
    url: Url = None,
    token: Annotated[
        str | None, typer.Option("--token", envvar="TOCSIN_TOKEN", help="A token with the role write.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Whether to wait until the history is learned.")
    ] = True,
    *,
    reading: dict[str, Any],
    file_format: Annotated[
        str | None, typer.Option("--format", help="csv, tsv, jsonl or parquet. Default: by file extension.")
    ] = None,
    most_lost: Annotated[
        float | None,
        typer.Option(
            "--most-lost", metavar="SHARE", help="Stop if more than this share of rows is lost; 1 never stops."
        ),
    ] = None,
    config: Config = None,
) -> None:
    """Import history into a running monitor: it is learned and judged, but sends no alerts.

    Importing the same data again is harmless.
    """
    asked = {"signal": signal, "format": file_format, "most_lost": most_lost, **reading}
    if "values" in asked:
        asked["value"] = asked.pop("values")
    with explained():
        address = url or address_of(read(config).settings)
        failed = False
        names: list[str] = []
        with client_of(address, token, PATIENCE) as client:
            for file in files:
                try:
                    names += _send(client, file, {name: one for name, one in asked.items() if one is not None})
                except MonitorError as error:
                    say(text_in_options(str(error)))
                    failed = True
            if names and wait:
                failed |= not _wait(client, list(dict.fromkeys(names)))
    raise typer.Exit(Exit.FAILED if failed else Exit.DONE)


def _send(client: "httpx.Client", file: Path, reading: dict[str, Any]) -> list[str]:
    """Import one file; returns the names of its signals."""
    with file.open("rb") as content:
        taken = answer(
            lambda: client.post(
                "/imports",
                params={"file": file.name, **reading},
                content=content,
                headers={"Content-Type": "application/octet-stream"},
            ),
            client,
        )
    say(f"{file}: {text_in_options(taken['understood'])}")
    for problem in taken["problems"]:
        say(f"{file}: {text_in_options(problem)}")
    for one in taken["signals"]:
        say(f"{one['signal']}: {_counted(one)}")
    return [one["signal"] for one in taken["signals"]]


def _counted(one: dict[str, Any]) -> str:
    text = f"{one['observations']:,} observations stored"
    if one["duplicates"]:
        text += f", {one['duplicates']:,} of them already there"
    if one["refused"]:
        text += f", {one['refused']:,} rejected"
    if one["older"]:
        text += f"; {one['older']:,} are older than storage.keep_observations and will be deleted once learned"
    return text


def _wait(client: "httpx.Client", names: list[str]) -> bool:
    """Wait until everything is learned, and print the incidents found; false if something could not be learned."""
    with progress() as bar:
        task = bar.add_task("learning", total=None)
        while True:
            imports = answer(lambda: client.get("/imports"), client)["imports"]
            found = {one["signal"]: one for one in imports if one["signal"] in names}
            bar.update(
                task,
                completed=sum(one["done"] for one in found.values()),
                total=sum(one["total"] for one in found.values()) or None,
            )
            if all(one["stage"] in ("done", "failed") for one in found.values()):
                break
            time.sleep(ASK_EVERY)
    for name in names:
        one = found.get(name)
        if one is not None and one["stage"] == "failed":
            say(f"{name}: cannot learn its history: {one['message']}")
        elif one is not None:
            typer.echo(f"{name}: learned, {one['incidents']:,} past incidents")
    return all(one["stage"] == "done" for one in found.values())
