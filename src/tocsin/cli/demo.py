"""`tocsin demo`: generate data of a machine with faults, and detect them."""

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from tocsin.cli.application import Exit, app, console, progress, require_matplotlib, say, whole_number
from tocsin.data import open_writer, read_signals
from tocsin.detection import Result, detect_signals
from tocsin.detection.incidents.incident import incident_columns, time_text
from tocsin.detection.incidents.verdict import name_and_unit
from tocsin.detection.views.view import length_text
from tocsin.evaluation.machine import FEATURES, Machine, simulate_machine
from tocsin.reports.picture import draw_detection
from tocsin.reports.tables import audit_summary, blamed_feature, incident_table, intervals_of, usual_rate_line

# An incident that starts this soon after a fault ends is counted as the end of that fault.
AFTERMATH = 15


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Folder for the generated files.")] = Path(
        "demo"
    ),
    seed: Annotated[int, typer.Option("--seed", parser=whole_number(0), metavar="INTEGER", help="Random seed.")] = 0,
) -> None:
    """Generate four weeks of a machine's sensor data with six faults, then detect the faults."""
    require_matplotlib("demo")
    recorded = out / "machine.csv"
    try:
        out.mkdir(parents=True, exist_ok=True)
        machine = simulate_machine(seed)
        with open_writer(recorded) as writer:
            columns = {name: machine.values[:, index] for index, name in enumerate(FEATURES)}
            writer.write({"time": machine.times, **columns})
    except OSError as error:
        raise typer.BadParameter(f"cannot write to {out}: {error}.", param_hint="--out") from error
    with read_signals(recorded) as signals, progress() as bar:
        task = bar.add_task("detecting", total=signals.rows)
        (result,) = detect_signals(signals, {}, keep=True, progress=lambda count: bar.update(task, advance=count))
    if result.audit is None:
        say(f"{recorded}: {result.error}")
        raise typer.Exit(Exit.FAILED)
    with open_writer(out / "verdicts.csv") as writer:
        writer.write(result.columns)
    with open_writer(out / "incidents.csv") as writer:
        writer.write(incident_columns(result.incident_list))
    known = [(machine.times[one.first], machine.times[one.last], one.feature, one.name) for one in machine.faults]
    draw_detection([result], out / "machine.png", faults=known)
    screen = console()
    names = ", ".join(map(_plain, FEATURES))
    screen.print(f"{len(machine.times)} observations of {names}, every 5 minutes: {recorded}")
    screen.print(usual_rate_line([result], "false incident", together=False) + "\n")
    screen.print(_fault_table(machine, result))
    intervals = intervals_of([result])
    screen.print(incident_table(result.incident_list, top=20, many=False, intervals=intervals))
    screen.print(audit_summary([result]))
    screen.print(f"\nthe same by hand: tocsin detect {recorded} --plot {out / 'machine.png'}")
    for name, file in (("verdicts", "verdicts.csv"), ("incidents", "incidents.csv"), ("picture", "machine.png")):
        screen.print(f"{name}: {out / file}")


def _fault_table(machine: Machine, result: Result) -> Table:
    table = Table(title="The injected faults", box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for heading in ("fault", "feature", "from", "to", "first alarm", "blamed", "seen by"):
        table.add_column(heading, overflow="fold")
    for fault in machine.faults:
        found = [
            incident
            for incident in result.incident_list
            if incident.last >= fault.first and incident.first <= fault.last + AFTERMATH
        ]
        first = max(found[0].first, fault.first) - fault.first if found else None
        after = "at once" if first == 0 else f"after {length_text(first, None)}" if first is not None else "none"
        if first is not None and first > fault.last - fault.first:
            after = "when it ended"
        start, end = (time_text(machine.times[at]) for at in (fault.first, fault.last))
        blamed, view = (_plain(blamed_feature(found[0])), found[0].view or "") if found else ("", "")
        table.add_row(fault.name, _plain(fault.feature), start, end, after, blamed, view)
    return table


def _plain(feature: str) -> str:
    return name_and_unit(feature)[0]
