"""`tocsin forecasters`: the available forecasters and what each needs."""

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from tocsin.cli.application import app, console
from tocsin.forecasting import available_forecasters


@app.command()
def forecasters() -> None:
    """List the forecasters, what each does and what it needs."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for heading in ("name", "what it does", "needs", "ready"):
        table.add_column(heading, overflow="fold")
    for entry in available_forecasters().values():
        try:
            needs = [entry.extra or "", *(f"--forecaster-option {argument}=..." for argument in entry.required)]
            ready = f"no: {', '.join(entry.missing)} not installed" if entry.missing else "yes"
            row = (entry.about, ", ".join(filter(None, needs)), ready)
        except Exception as error:  # somebody else's package must not hide all others
            row = ("", "", f"no: {error}")
        table.add_row(entry.name, *map(escape, row))
    console().print(table)
