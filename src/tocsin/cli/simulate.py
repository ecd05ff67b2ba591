"""`tocsin simulate`: how well calibrated each method is on simulated data."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from tocsin.cli.application import app, console, progress, refuse_unknown, require_matplotlib, whole_number
from tocsin.evaluation import METHODS, SCENARIOS, simulation, simulation_report

T = TypeVar("T")

SIZE = "--realisations, --length"


def _chosen(option: str, names: list[str] | None, known: Mapping[str, T]) -> list[T]:
    """The named items, without duplicates, in the order of `known`; all of them if none is named."""
    refuse_unknown(option, names or [], known)
    return [value for name, value in known.items() if not names or name in names]


@app.command()
def simulate(
    scenario: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"A scenario to run; repeatable. Default: all, {', '.join(SCENARIOS)}."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"A method to run; repeatable. Default: all, {', '.join(METHODS)}."),
    ] = None,
    realisations: Annotated[
        int, typer.Option(parser=whole_number(1), metavar="INTEGER", help="Independent repetitions of each scenario.")
    ] = 15,
    length: Annotated[
        int | None,
        typer.Option(
            parser=whole_number(200),
            metavar="INTEGER",
            help="Observations of each realisation. Default: the scenario's own.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(parser=whole_number(0), metavar="INTEGER", help="Random seed.")] = 0,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for simulation.csv and simulation.png.")] = Path(
        "simulation"
    ),
    plot: Annotated[bool, typer.Option(help="Draw the picture (needs the extra 'plot').")] = True,
    threads: Annotated[
        int | None,
        typer.Option(parser=whole_number(1, 1024), metavar="INTEGER", help="Number of threads. Default: one per core."),
    ] = None,
) -> None:
    """Score simulated errors whose true p-values are known, and show how well calibrated each method is."""
    scenarios = _chosen("--scenario", scenario, SCENARIOS)
    methods = _chosen("--method", method, METHODS)
    if plot:
        require_matplotlib("--plot")
    numbers, picture = out / "simulation.csv", out / "simulation.png"
    try:
        out.mkdir(parents=True, exist_ok=True)
        # Check before the work starts that the results can be written.
        for file in (numbers, picture) if plot else (numbers,):
            file.open("ab").close()
    except OSError as error:
        raise typer.BadParameter(f"cannot write to {out}: {error}.", param_hint="--out") from error

    with progress() as bar:
        task = bar.add_task("starting", total=simulation.steps(scenarios, methods, length))
        runs = simulation.simulate(
            scenarios,
            methods,
            realisations=realisations,
            seed=seed,
            length=length,
            threads=threads or min(os.cpu_count() or 1, 1024),
            progress=lambda doing: bar.update(task, advance=1, description=doing),
        )
        try:
            results = list(runs)
        except MemoryError as error:
            raise typer.BadParameter(f"too many for this machine's memory: {error}", param_hint=SIZE) from error
    # Files first: what is printed may go to a pipe that closes early.
    simulation_report.write_csv(results, numbers, seed=seed)
    if plot:
        simulation_report.draw_figure(results, picture)
    screen = console()
    screen.print(simulation_report.summary_table(results))
    screen.print(simulation_report.decile_table(results))
    screen.print(f"numbers: {numbers}")
    if plot:
        screen.print(f"picture: {picture}")
