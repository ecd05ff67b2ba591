"""Judge a forecaster on real series. Nothing here is used in training.

    python -m training.evaluate --tsb DIR           errors at every origin of TSB-AD-U files
    python -m training.evaluate --forecast DIR      accuracy and coverage beside classical models
    python -m training.evaluate --contaminated DIR  how much errors grow when contexts hold anomalies

`--tsb`: the mean absolute error of 15-step forecasts from every origin that has at least 52 observations before it and
15 from it on, over the steps and origins of a file, then over the files of a data set. A context is the newest so many
observations, fewer at the beginning of a file. The references beside it follow each file from its beginning.

`--forecast`: MASE, weighted quantile loss (WQL) and the coverage of the band from 10% to 90%, at 15 and 32 steps ahead,
beside last value, seasonal naive, AutoETS and AutoTheta of statsforecast, all on the same windows. Each model forecasts
a window once; the first 15 steps of 32 are judged at horizon 15. `draw_windows` says which windows are drawn. Windows
in which a value is missing, or whose context repeats itself exactly (MASE has no unit then), are left out and counted.
Where a model of statsforecast cannot be fitted, the seasonal naive forecast takes its place, and that is counted too.

`--contaminated`: how many times larger the errors of 15-step forecasts become when 2% of the context's points are
spikes of 10 standard deviations, or 30 of them, followed by 50 undisturbed ones, are shifted by 3.

The last line that each prints is for scripts: `name=value` pairs. Files that cannot be read are named on standard error
and left out; the exit code is 3 then.
"""

import os
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from tocsin.cli.application import Exit, console, say, whole_number
from tocsin.cli.options import options_of
from tocsin.forecasting.forecaster import Floats, Forecast
from tocsin_bench.files import dataset_of
from training.judging.comparison import COVERAGE, ERRORS, HORIZONS, compare, error_growth, means, rows_by_data_set
from training.judging.contamination import CONTAMINATIONS, LEAST_CONTEXT
from training.judging.every_origin import HORIZON, REFERENCES, Column, mean_errors, origins_of
from training.judging.folders import read_folder, read_series, read_tsb_file
from training.judging.forecasts import forecasts_of
from training.judging.peers import PEERS, SEASONAL_NAIVE, check_kept, peer_forecasts
from training.judging.recipe import Recipe
from training.judging.report import comparison_line, errors_table, line, plain_table, ranked_table
from training.judging.windows import SEED, Window, draw_windows

WINDOWS = 200
# Fewer, since each is forecast three times.
CONTAMINATED_WINDOWS = 40

READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "--tsb": (".csv", read_tsb_file),
    "--forecast": (".npz", read_series),
    "--contaminated": (".npz", read_series),
}

DataSets = Mapping[Path, Mapping[str, Floats]]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def _folder(name: str, about: str) -> Any:
    return typer.Option(name, exists=True, file_okay=False, metavar="DIR", help=about)


def _count(about: str) -> Any:
    return typer.Option(parser=whole_number(1), metavar="INTEGER", help=about)


@app.command()
def evaluate(
    tsb: Annotated[Path | None, _folder("--tsb", "Files of TSB-AD-U (.csv): errors at every origin.")] = None,
    forecast: Annotated[
        Path | None, _folder("--forecast", "Series (.npz, one array each): accuracy and coverage beside others.")
    ] = None,
    contaminated: Annotated[
        Path | None, _folder("--contaminated", "The same files: how errors grow with anomalies in the context.")
    ] = None,
    forecaster: Annotated[str, typer.Option(metavar="NAME", help="Which forecaster is judged.")] = "embedded",
    options: Annotated[
        list[str] | None,
        typer.Option("--set", "--forecaster-option", metavar="NAME=VALUE", help="An argument of it; repeatable."),
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, metavar="FILE", help="Short for --set weights=FILE.")
    ] = None,
    limit: Annotated[int | None, _count("Only the first so many files.")] = None,
    jobs: Annotated[
        int | None, _count("Processes, of one thread each; with 1 this process. Default: one for each core.")
    ] = None,
    contexts: Annotated[str, typer.Option(metavar="LENGTHS", help="--tsb: lengths of the context.")] = "52,512,1024",
    every: Annotated[int, _count("--tsb: only every so many origins, for a quick look.")] = 1,
    windows: Annotated[
        int | None,
        _count(
            "--forecast, --contaminated: windows of each data set, at most. "
            f"Default: {WINDOWS}, and {CONTAMINATED_WINDOWS} if contaminated."
        ),
    ] = None,
    peers: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            metavar="FILE",
            help="--forecast, --contaminated: keeps the others' forecasts (.npz), which are used again if they were "
            "made for the same windows. Each of the two needs a file of its own.",
        ),
    ] = None,
) -> None:
    """Judge a forecaster: give one of --tsb, --forecast and --contaminated."""
    folders = {"--tsb": tsb, "--forecast": forecast, "--contaminated": contaminated}
    given = [(option, folder) for option, folder in folders.items() if folder is not None]
    if len(given) != 1:
        raise typer.BadParameter("give exactly one of these.", param_hint=", ".join(folders))
    recipe = _recipe(forecaster, options or [], weights)
    [(option, folder)] = given
    lengths = _lengths(contexts)
    jobs = jobs or os.cpu_count() or 1
    try:
        if peers is not None:
            check_kept(peers)
        found, unreadable = read_folder(folder, *READERS[option], most=limit)
    except ValueError as error:
        raise typer.BadParameter(f"{error}.") from error
    for file, problem in unreadable.items():
        say(f"left out: {file}: {problem}")
    if option == "--tsb":
        last_line = judge_every_origin(found, recipe, lengths, every, jobs)
    elif option == "--forecast":
        last_line = judge_beside_peers(found, recipe, windows or WINDOWS, jobs, peers)
    else:
        last_line = judge_contaminated(found, recipe, windows or CONTAMINATED_WINDOWS, jobs, peers)
    typer.echo(last_line)
    if unreadable:
        raise typer.Exit(Exit.DAMAGED)


def _lengths(text: str) -> list[int]:
    try:
        return [whole_number(1)(length) for length in text.split(",")]
    except typer.BadParameter as error:
        raise typer.BadParameter(error.message, param_hint="--contexts") from error


def _recipe(name: str, options: list[str], weights: Path | None) -> Recipe:
    """The forecaster that is asked for; it is made once here, to refuse what cannot be made before any work."""
    given = options_of(options, "--forecaster-option")
    if weights is not None:
        given["weights"] = str(weights)
    recipe = Recipe(name, tuple(given.items()))
    try:
        recipe.forecaster()
    except (ImportError, OSError, TypeError, ValueError) as error:
        raise typer.BadParameter(f"{error}.", param_hint="--forecaster") from error
    return recipe


def judge_every_origin(
    series: Mapping[Path, Floats], recipe: Recipe, contexts: Sequence[int], every: int, jobs: int
) -> str:
    """Print the errors at every origin; returns the line for scripts."""
    by_file = mean_errors(series, recipe, contexts, every, jobs)
    files = Counter(dataset_of(file.stem) for file in series)
    columns: list[Column] = [*contexts, *REFERENCES]
    errors = {}
    for data_set, _ in files.most_common():
        members = [file for file in series if dataset_of(file.stem) == data_set]
        errors[data_set] = {column: float(np.mean([by_file[file, column] for file in members])) for column in columns}
    origins = sum(origins_of(values.size, every).size for values in series.values())
    which = "all origins" if every == 1 else f"only 1 in {every} origins"
    title = f"{recipe.name}: mean absolute error {HORIZON} steps ahead, {which} ({origins:,})"
    console().print(errors_table(title, errors, files))
    return line({f"{name.lower()}{context}": errors[name][context] for context in contexts for name in errors})


def judge_beside_peers(data_sets: DataSets, recipe: Recipe, most: int, jobs: int, kept: Path | None) -> str:
    """Print the scores beside those of the classical models; returns the line for scripts."""
    windows = _windows(data_sets, most, HORIZONS)
    forecasts = _forecasts(windows, recipe, jobs, kept)
    scores = {}
    for horizon in HORIZONS:
        counts = {data_set: len(rows) for data_set, rows in rows_by_data_set(windows, horizon).items()}
        if not counts:
            say(f"no series is long enough for a horizon of {horizon}")
            continue
        scores[horizon] = compare(windows, forecasts, horizon)
        for metric in ERRORS:
            title = f"{metric}, {horizon} steps ahead"
            console().print(ranked_table(title, scores[horizon][metric], counts, list(forecasts), SEASONAL_NAIVE))
        title = f"coverage of the band from 10% to 90%, {horizon} steps ahead"
        console().print(plain_table(title, scores[horizon][COVERAGE], counts, list(forecasts)))
    return comparison_line(scores, recipe.name, SEASONAL_NAIVE)


def judge_contaminated(data_sets: DataSets, recipe: Recipe, most: int, jobs: int, kept: Path | None) -> str:
    """Print how much errors grow with anomalies in the context; returns the line for scripts."""
    windows = _windows(data_sets, most, (HORIZON,), LEAST_CONTEXT)
    variants = list(windows)
    for kind, contaminate in CONTAMINATIONS.items():
        rng = np.random.default_rng([SEED, zlib.crc32(kind.encode())])
        variants += [replace(window, context=contaminate(window.context, rng)) for window in windows]
    forecasts = _forecasts(variants, recipe, jobs, kept)
    clean, *spoiled = [
        {model: _rows(forecast, first, first + len(windows)) for model, forecast in forecasts.items()}
        for first in range(0, len(variants), len(windows))
    ]
    counts = Counter(window.data_set for window in windows)
    pairs = {}
    for kind, after in zip(CONTAMINATIONS, spoiled, strict=True):
        growth = error_growth(windows, clean, after, HORIZON)
        title = f"errors with {kind} in the context / without, {HORIZON} steps ahead"
        console().print(plain_table(title, growth, counts, list(forecasts)))
        for model, mean in means(growth).items():
            pairs[f"growth_{kind}_{model.lower().replace(' ', '_').replace('-', '_')}"] = mean
    return line(pairs)


def _windows(data_sets: DataSets, most: int, horizons: Sequence[int], least_context: int = 1) -> list[Window]:
    drawn = [
        window
        for file, series in data_sets.items()
        for window in draw_windows(file.stem, series, most, horizons, least_context)
    ]
    if not drawn:
        raise typer.BadParameter(f"no series is long enough to forecast {min(horizons)} steps.")
    usable = [window for window in drawn if window.usable]
    typer.echo(f"{len(drawn):,} windows, {len(drawn) - len(usable)} of them left out: values missing, or no MASE")
    if not usable:
        raise typer.BadParameter("there is no window without missing values for which there is a MASE.")
    return usable


def _forecasts(windows: Sequence[Window], recipe: Recipe, jobs: int, kept: Path | None) -> dict[str, Forecast]:
    """By model, ours first."""
    ours = forecasts_of(recipe, windows, jobs)
    theirs = peer_forecasts(windows, jobs, kept)
    failures = dict(zip(PEERS, theirs.failed.sum(axis=1).tolist(), strict=True))
    typer.echo(f"fits that failed: {', '.join(f'{peer} {count}' for peer, count in failures.items())}")
    return {recipe.name: ours, **{peer: theirs.of(peer) for peer in PEERS}}


def _rows(forecast: Forecast, first: int, last: int) -> Forecast:
    quantiles = None if forecast.quantiles is None else forecast.quantiles[first:last]
    return Forecast(forecast.median[first:last], quantiles)


if __name__ == "__main__":
    app()
