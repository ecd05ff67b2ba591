"""`tocsin bench`: run detectors on folders of labelled files and report the results."""

import os
import platform
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
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
from tocsin.forecasting import available_forecasters, make_forecaster
from tocsin_bench import ablation
from tocsin_bench.archives import nab_files, nab_windows, read_nab, read_ucr, ucr_files
from tocsin_bench.baselines import BASELINES, BaselineError, BaselineWorker
from tocsin_bench.files import LabelledFile, dataset_of, find_files
from tocsin_bench.forecast_errors import ForecasterChoice
from tocsin_bench.grid import TUNABLE, combinations, grid_plan
from tocsin_bench.methods import METHODS
from tocsin_bench.report import summary_tables, write_report
from tocsin_bench.report.formats import comma_separated, csv_text, for_terminal
from tocsin_bench.report.public import nab_sheet, ucr_sheet
from tocsin_bench.report.sheet import Sheet
from tocsin_bench.report.summaries import grouped
from tocsin_bench.results import FILES_OF, BenchmarkResults, MethodRun
from tocsin_bench.rivals import RIVALS
from tocsin_bench.runner import PROTOCOLS, RunPlan, run_benchmark
from tocsin_bench.selection import (
    CRITERIA,
    Comparison,
    best_overall,
    choice_sheet,
    chosen_quality,
    combination_sheet,
    compare,
    leave_one_out,
    mean_choice,
)
from tocsin_bench.sources import refuse_other_files

bench = typer.Typer(
    name="bench",
    help="Run detectors on folders of labelled files (TSB-AD) and report the results.",
    no_args_is_help=True,
)
app.add_typer(bench)

DEFAULT_FORECASTERS = ("embedded:context_length=52", "embedded:context_length=512")

Folders = Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of CSV files in TSB-AD format.")]
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
PublicMethods = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        metavar="NAME",
        help=f"A method to run; repeatable. Default: tocsin, tocsin-light, w1-acas and {', '.join(RIVALS)}.",
    ),
]
Forecaster = Annotated[str, typer.Option(metavar="NAME[:OPTION=VALUE,...]", help="The forecaster with its options.")]
Plot = Annotated[bool, typer.Option(help="Draw figures (needs the extra 'plot').")]


@bench.command()
def run(
    folders: Folders,
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
    protocol: Annotated[
        str, typer.Option(metavar="NAME", help=f"How to evaluate a file: {' or '.join(PROTOCOLS)}.")
    ] = "paper",
    jobs: Jobs = None,
) -> None:
    """Run every method on every file and save the results. An interrupted run resumes where it stopped."""
    refuse_unknown("--protocol", [protocol], PROTOCOLS)
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
        protocol=protocol,
    )
    runs = _benchmark(_files(folders, dataset, limit), out, plan, jobs, _files(folders, dataset, None))
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
    folders: Folders,
    out: Out,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help=f"A setting to change; repeatable. Default: all, {', '.join(ablation.SETTINGS)}."
        ),
    ] = None,
    forecaster: Forecaster = DEFAULT_FORECASTERS[0],
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
    runs = _benchmark(_files(folders, dataset, limit), out, plan, jobs, _files(folders, dataset, None))
    numbers, picture = out / "ablation.csv", out / "ablation.png"
    numbers.write_text(csv_text(ablation.ablation_rows(runs, settings)), encoding="utf-8")
    if plot:
        ablation.draw_ablation(runs, settings, picture)
    _finish(runs)
    _show_sheets(out, ablation.ablation_sheet(runs, settings))
    typer.echo(f"numbers of each data set: {numbers}" + (f"\npicture: {picture}" if plot else ""))


@bench.command()
def nab(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A clone of NAB, or a folder with files of it and windows.json.")
    ],
    out: Out,
    method: PublicMethods = None,
    forecaster: Forecaster = DEFAULT_FORECASTERS[0],
    jobs: Jobs = None,
) -> None:
    """Score methods as the Numenta Anomaly Benchmark does, beside its published scores."""
    windows = _found(lambda: nab_files(folder), "FOLDER")
    plan = _public_plan(method, forecaster, partial(read_nab, windows=windows))
    runs = _benchmark(list(windows), out, plan, jobs)
    done = {run.file for run in runs if run.status == "ok"}
    _finish(runs)
    rows = {path.stem: nab_windows(path, windows) for path in windows if path.stem in done}
    with BenchmarkResults.existing(out) as results:
        _show_with_note(out, _found(lambda: nab_sheet(results, runs, rows), "--out"))


@bench.command()
def ucr(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="Folders with files of the UCR anomaly archive, its own or TSB-AD's."),
    ],
    out: Out,
    method: PublicMethods = None,
    forecaster: Forecaster = DEFAULT_FORECASTERS[0],
    limit: Limit = None,
    jobs: Jobs = None,
) -> None:
    """Show how often the highest score is within 100 of the anomaly, on files of the UCR anomaly archive."""
    everything = _found(lambda: ucr_files(folders), "DIR")
    paths = everything[:limit]
    runs = _benchmark(paths, out, _public_plan(method, forecaster, read_ucr), jobs, everything)
    done = {run.file for run in runs if run.status == "ok"}
    _finish(runs)
    files = {path.stem: read_ucr(path) for path in paths if path.stem in done}
    with BenchmarkResults.existing(out) as results:
        _show_with_note(out, _found(lambda: ucr_sheet(results, runs, files), "--out"))


def _show_with_note(out: Path, sheet: Sheet) -> None:
    _show_sheets(out, sheet)
    typer.echo(sheet.note)


def _public_plan(method: Sequence[str] | None, forecaster: str, reader: Callable[[Path], LabelledFile]) -> RunPlan:
    chosen = method or ["tocsin", "tocsin-light", "w1-acas", *RIVALS]
    refuse_unknown("--method", chosen, [*METHODS, *RIVALS])
    return RunPlan(
        forecasters=_forecasters([forecaster]),
        methods=tuple(one for name, one in METHODS.items() if name in chosen),
        rivals=tuple(name for name in RIVALS if name in chosen),
        reader=reader,
    )


@bench.command()
def select(
    folders: Folders,
    out: Out,
    tried: Annotated[
        list[str],
        typer.Option(
            "--try",
            metavar="NAME=VALUE|VALUE...",
            help="A setting or constant of the detector and the values to try, such as 'window=1000|2000', quoted; "
            f"repeatable: all combinations are tried. One of {', '.join(TUNABLE)}.",
        ),
    ],
    by: Annotated[
        str,
        typer.Option(metavar="NAME", help="What decides: vus-pr, events (found), or both, the mean of the two."),
    ] = "both",
    dataset: Datasets = None,
    limit: Limit = None,
    jobs: Jobs = None,
) -> None:
    """Choose among settings of the detector, and show what the choice is worth on data sets it has not seen.

    Each data set is left out in turn: the combination that is best on the others is judged on it.
    """
    refuse_unknown("--by", [by], CRITERIA)
    grid = _found(lambda: combinations(_tried(tried)), "--try")
    paths = _files(folders, dataset, limit)
    _require_two({dataset_of(path.stem) for path in paths})
    runs = _benchmark(paths, out, grid_plan(grid), jobs)
    _finish(runs)
    comparison = compare(runs, [one.label for one in grid])
    _tell_not_counted(comparison)
    choices = leave_one_out(comparison.values(by))
    _show_sheets(out, combination_sheet(comparison), choice_sheet(choices, by))
    typer.echo(f"best on all data sets: {best_overall(comparison.values(by))}")
    mean, quality = mean_choice(choices), chosen_quality(comparison, choices)
    typer.echo(
        f"chosen_on={mean.chosen_on:.3f} left_out={mean.left_out:.3f} hindsight={mean.hindsight:.3f} "
        f"vus_pr={quality.vus_pr:.3f} events={quality.events:.3f}"
    )


def _tried(given: Sequence[str]) -> dict[str, list[Any]]:
    """The values to try, by setting."""
    tried: dict[str, list[Any]] = {}
    for text in given:
        name, equals, values = (part.strip() for part in text.partition("="))
        if not (name and equals and values):
            raise typer.BadParameter(f"{text!r} is not NAME=VALUE|VALUE...", param_hint="--try")
        refuse_unknown("--try", [name], TUNABLE)
        if name in tried:
            raise typer.BadParameter(
                f"{name} is given twice: put all its values in one, with | between.", param_hint="--try"
            )
        tried[name] = [_value(name, value.strip()) for value in values.split("|")]
    return tried


def _value(name: str, text: str) -> Any:
    if TUNABLE[name] is Mapping:
        return options_of(text.split(","), "--try")
    return options_of([f"{name}={text}"], "--try")[name]


def _require_two(datasets: Collection[str]) -> None:
    if len(datasets) < 2:
        raise typer.BadParameter(
            f"leaving one data set out takes at least two, got {', '.join(datasets)}.", param_hint="DIR, --dataset"
        )


def _tell_not_counted(comparison: Comparison) -> None:
    """Name the series that have no numbers, and stop if there are too few others."""
    if comparison.not_counted:
        say(
            f"not counted, since nothing is labelled in them or a combination failed: {len(comparison.not_counted)} "
            f"series: {', '.join(comparison.not_counted)}"
        )
    if len(comparison.series) < 2:
        say("Fewer than two data sets have a series that all combinations could be judged by.")
        raise typer.Exit(Exit.FAILED)


def _show_sheets(out: Path, *sheets: Sheet) -> None:
    """Print the tables, and write them as CSV."""
    screen = console()
    for sheet in sheets:
        screen.print(for_terminal(sheet))
        (out / f"{sheet.name}.csv").write_text(comma_separated(sheet), encoding="utf-8")
    typer.echo(f"tables: {', '.join(str(out / f'{sheet.name}.csv') for sheet in sheets)}")


def _files(folders: Sequence[Path], datasets: Sequence[str] | None, limit: int | None) -> list[Path]:
    paths: list[Path] = _found(lambda: find_files(folders, datasets or [], limit), "DIR, --dataset")
    return paths


def _benchmark(
    paths: Sequence[Path], out: Path, plan: RunPlan, jobs: int | None, everything: Sequence[Path] = ()
) -> list[MethodRun]:
    """Run a plan, and return all its runs, including earlier ones; `paths` may be a part of `everything`."""
    with _found(lambda: BenchmarkResults(out), "--out") as results:
        _found(lambda: refuse_other_files(paths, results), "--out")
        _describe(results, plan, Counter(dataset_of(path.stem) for path in everything))
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


def _describe(results: BenchmarkResults, plan: RunPlan, files: Mapping[str, int]) -> None:
    """Record what the results were computed with, and refuse to mix them with results of another kind."""
    # Only methods on forecasts depend on horizons: those that forecast for themselves, baselines and scores fit any.
    on_forecasts = any(not method.forecasts_itself for method in plan.methods)
    horizons = {"horizons": str(plan.horizons)} if on_forecasts else {}
    known = results.about()
    if horizons and known.get("horizons", str(plan.horizons)) != str(plan.horizons):
        raise typer.BadParameter(
            f"{results.folder} holds results for {known['horizons']} horizons, not {plan.horizons}: use another one.",
            param_hint="--out",
        )
    protocol = known.get("protocol", "paper" if results.finished() else plan.protocol)
    if protocol != plan.protocol:
        raise typer.BadParameter(
            f"{results.folder} holds results by the protocol {protocol}, not {plan.protocol}: use another one.",
            param_hint="--out",
        )
    results.describe(
        {
            **horizons,
            "protocol": plan.protocol,
            # How many files each data set has, so that the report can tell a part from all of them.
            **{f"{FILES_OF}{name}": str(number) for name, number in files.items()},
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
