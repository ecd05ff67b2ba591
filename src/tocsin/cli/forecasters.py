"""`tocsin forecasters`: the available forecasters and what each needs."""

from rich.box import SIMPLE_HEAD
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
        needs = [f"tocsin[{entry.extra}]"] if entry.extra else []
        needs += [f"--forecaster-option {argument}=..." for argument in entry.required]
        ready = "yes" if not entry.missing else f"no: {', '.join(entry.missing)} not installed"
        table.add_row(entry.name, entry.about, ", ".join(needs).replace("[", "\\["), ready)
    console().print(table)
