"""`tocsin bench`: run detectors on folders of labelled files and report the results."""

import os
import platform
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from tocsin import __version__
from tocsin.cli.application import (
    Exit,
    app,
    console,
    progress,
    refuse_unknown,
    require_matplotlib,
    say,
    whole_number,
)
from tocsin.cli.options import options_of
from tocsin.evaluation.bench import ablation
from tocsin.evaluation.bench.baselines import BASELINES, BaselineError, BaselineWorker
from tocsin.evaluation.bench.files import find_files
from tocsin.evaluation.bench.forecast_errors import ForecasterChoice
from tocsin.evaluation.bench.methods import METHODS
from tocsin.evaluation.bench.report import summary_tables, write_report
from tocsin.evaluation.bench.report.formats import csv_text
from tocsin.evaluation.bench.report.summaries import grouped
from tocsin.evaluation.bench.results import BenchmarkResults, MethodRun
from tocsin.evaluation.bench.rivals import RIVALS
from tocsin.evaluation.bench.runner import RunPlan, run_benchmark
from tocsin.evaluation.bench.sources import refuse_other_files
from tocsin.forecasting import available_forecasters, make_forecaster

bench = typer.Typer(
    name="bench",
    help="Run detectors on a folder of labelled files (TSB-AD) and report the results.",
    no_args_is_help=True,
)
app.add_typer(bench)

DEFAULT_FORECASTERS = ("embedded:context_length=52", "embedded:context_length=512")

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of CSV files in TSB-AD format.")]
Out = Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the results. An earlier run in it is resumed.")]
Datasets = Annotated[
    list[str] | None, typer.Option("--dataset", metavar="NAME", help="Only files of this dataset; repeatable.")
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", parser=whole_number(1), metavar="INTEGER", help="Use at most this many files per dataset."),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", parser=whole_number(1, 1024), metavar="INTEGER", help="Number of processes. Default: all cores."
    ),
]
Forecasters = Annotated[
    list[str] | None,
    typer.Option(
        "--forecaster",
        metavar="NAME[:OPTION=VALUE,...]",
        help=f"A forecaster with its options; repeatable. Default: {' and '.join(DEFAULT_FORECASTERS)}.",
    ),
]
Plot = Annotated[bool, typer.Option(help="Draw figures (needs the extra 'plot').")]


@bench.command()
def run(
    folder: Folder,
    out: Out,
    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help=f"A method to run; repeatable. Default: {', '.join([*METHODS, *RIVALS])}; none if there are --scores "
            f"and no --forecaster. By name, with --tsb-ad, also: {', '.join(BASELINES)}.",
        ),
    ] = None,
    forecaster: Forecasters = None,
    horizons: Annotated[
        int, typer.Option(parser=whole_number(1, 1024), metavar="INTEGER", help="How many steps ahead to forecast.")
    ] = 15,
    dataset: Datasets = None,
    limit: Limit = None,
    scores: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=FOLDER",
            help="Scores from another tool: one CSV file per input file, with a column score or p; repeatable.",
        ),
    ] = None,
    tsb_ad: Annotated[
        str | None, typer.Option(metavar="PYTHON", help="Python interpreter of an environment with TSB-AD installed.")
    ] = None,
    baseline_timeout: Annotated[
        int, typer.Option(parser=whole_number(1), metavar="SECONDS", help="Time limit for each TSB-AD method.")
    ] = 600,
    jobs: Jobs = None,
) -> None:
    """Run every method on every file and save the results. An interrupted run resumes where it stopped."""
    # A user who brings scores and asks for nothing else wants to see only these.
    chosen = method or ([] if scores and not forecaster else [*METHODS, *RIVALS])
    refuse_unknown("--method", chosen, [*METHODS, *RIVALS, *BASELINES])
    baselines = tuple(name for name in BASELINES if name in chosen)
    if baselines:
        _check_baselines(baselines, tsb_ad)
    plan = RunPlan(
        forecasters=_forecasters(forecaster),
        methods=tuple(method for name, method in METHODS.items() if name in chosen),
        horizons=horizons,
        rivals=tuple(name for name in RIVALS if name in chosen),
        baselines=baselines,
        baseline_python=tsb_ad or "",
        baseline_timeout=baseline_timeout,
        outside=tuple(_outside(text) for text in scores or []),
    )
    runs = _benchmark(folder, out, plan, dataset or [], limit, jobs)
    typer.echo(f"results: {out}; for tables and figures: tocsin bench report {out}")
    _finish(runs)


@bench.command()
def report(
    results: Annotated[Path, typer.Argument(metavar="OUT", help="Folder that `tocsin bench run` wrote to.")],
    to: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder for the report. Default: OUT/report.")
    ] = None,
    plot: Plot = True,
) -> None:
    """Print the tables; write all tables and figures, and one page with everything."""
    if plot:
        require_matplotlib("--plot")
    folder = to or results / "report"
    with _found(lambda: BenchmarkResults.existing(results), "OUT") as found:
        if not found.runs():
            raise typer.BadParameter(f"{results} holds no runs yet.", param_hint="OUT")
        written = _found(lambda: write_report(found, folder, figures=plot), "--to")
        screen = console()
        for table in summary_tables(found):
            screen.print(table)
    typer.echo(f"{len(written)} files in {folder}, all on one page: {folder / 'report.html'}")


@bench.command()
def ablate(
    folder: Folder,
    out: Out,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help=f"A setting to change; repeatable. Default: all, {', '.join(ablation.SETTINGS)}."
        ),
    ] = None,
    forecaster: Annotated[
        str,
        typer.Option(metavar="NAME[:OPTION=VALUE,...]", help="The forecaster with its options."),
    ] = DEFAULT_FORECASTERS[0],
    dataset: Datasets = None,
    limit: Limit = None,
    jobs: Jobs = None,
    plot: Plot = True,
) -> None:
    """Change the settings of W1-ACAS one at a time and show the effect of each."""
    refuse_unknown("--setting", setting or [], ablation.SETTINGS)
    settings = [name for name in ablation.SETTINGS if not setting or name in setting]
    if plot:
        require_matplotlib("--plot")
    plan = ablation.ablation_plan(_forecasters([forecaster]), settings)
    runs = _benchmark(folder, out, plan, dataset or [], limit, jobs)
    numbers, picture = out / "ablation.csv", out / "ablation.png"
    numbers.write_text(csv_text(ablation.ablation_rows(runs, settings)), encoding="utf-8")
    if plot:
        ablation.draw_ablation(runs, settings, picture)
    typer.echo(f"numbers: {numbers}" + (f"\npicture: {picture}" if plot else ""))
    _finish(runs)


def _benchmark(
    folder: Path, out: Path, plan: RunPlan, datasets: Sequence[str], limit: int | None, jobs: int | None
) -> list[MethodRun]:
    """Run a plan, and return all its runs, including earlier ones."""
    paths = _found(lambda: find_files(folder, datasets, limit), "DIR, --dataset")
    with _found(lambda: BenchmarkResults(out), "--out") as results:
        _found(lambda: refuse_other_files(paths, results), "--out")
        _describe(results, plan)
        with progress() as bar:
            task = bar.add_task("benchmark", total=len(paths))
            run_benchmark(
                paths,
                plan,
                results,
                jobs=min(jobs or os.cpu_count() or 1, len(paths)),
                progress=lambda name: bar.update(task, advance=1, description=name),
            )
        wanted = {key for path in paths for several in (False, True) for key in plan.keys(path.stem, several)}
        return [run for run in results.runs() if run.key in wanted]


def _describe(results: BenchmarkResults, plan: RunPlan) -> None:
    """Record what the results were computed with, and refuse to mix them with results of another kind."""
    # Only methods on forecasts depend on horizons: baselines and scores fit any.
    horizons = {"horizons": str(plan.horizons)} if plan.methods else {}
    known = results.about()
    if horizons and known.get("horizons", str(plan.horizons)) != str(plan.horizons):
        raise typer.BadParameter(
            f"{results.folder} holds results for {known['horizons']} horizons, not {plan.horizons}: use another one.",
            param_hint="--out",
        )
    results.describe(
        {
            **horizons,
            "tocsin": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
            "last run": datetime.now(UTC).isoformat(timespec="seconds"),
        }
    )


def _finish(runs: Sequence[MethodRun]) -> None:
    """Report failed runs. The command itself fails only if every run failed."""
    for status in ("skipped", "failed"):
        problems = [run for run in runs if run.status == status]
        for (file, problem), of_file in grouped(problems, lambda run: (run.file, run.problem)).items():
            say(f"{file}: {status}, {', '.join(sorted({run.method for run in of_file}))}: {problem}")
    if not any(run.status == "ok" for run in runs):
        raise typer.Exit(Exit.FAILED)


def _found(make: Callable[[], Any], option: str) -> Any:
    """The result of `make`, with the user's mistakes reported as usage errors."""
    try:
        return make()
    except (OSError, ValueError) as error:
        raise typer.BadParameter(f"{error}.", param_hint=option) from error


def _forecasters(given: Sequence[str] | None) -> tuple[ForecasterChoice, ...]:
    choices = []
    for text in given or DEFAULT_FORECASTERS:
        name, _, options = text.partition(":")
        refuse_unknown("--forecaster", [name], available_forecasters())
        try:
            # A forecaster's options are part of --forecaster here, so an error in them must name that option.
            choice = ForecasterChoice(name, options_of([part for part in options.split(",") if part], "--forecaster"))
            make_forecaster(choice.name, choice.options)
        except (ImportError, OSError, TypeError, ValueError, typer.BadParameter) as error:
            raise typer.BadParameter(f"{text!r}: {error}", param_hint="--forecaster") from error
        choices.append(choice)
    return tuple(choices)


def _outside(text: str) -> tuple[str, Path]:
    name, equals, folder = text.partition("=")
    if not (name and equals and Path(folder).is_dir()):
        raise typer.BadParameter(f"{text!r} must be NAME=FOLDER, where FOLDER exists.", param_hint="--scores")
    return name, Path(folder)


def _check_baselines(names: Sequence[str], python: str | None) -> None:
    """Check before the work starts that the TSB-AD methods can run."""
    if python is None:
        raise typer.BadParameter(
            f"{', '.join(names)} need --tsb-ad, the Python interpreter of an environment with TSB-AD.",
            param_hint="--method",
        )
    try:
        with BaselineWorker(python):
            pass
    except BaselineError as error:
        raise typer.BadParameter(str(error), param_hint="--tsb-ad") from error
