"""`tocsin detectable`: which faults would be found in the signals of files, and how soon."""

from typing import Annotated, Any

import typer

from tocsin.cli.application import Exit, app, console, progress, say, whole_number
from tocsin.cli.detect import label_of
from tocsin.cli.options import (
    check_settings,
    in_options,
    number_or_text,
    takes_detector_settings,
    takes_reading_options,
)
from tocsin.data import DataError, Signal, read_signals
from tocsin.detection import Detector
from tocsin.evaluation import Detectability
from tocsin.evaluation import detectable as measure


@app.command()
@takes_detector_settings
@takes_reading_options(separate=True)
def detectable(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="As for `detect`; - for standard input.")],
    *,
    reading: dict[str, Any],
    cases: Annotated[
        int,
        typer.Option(
            "--cases", parser=whole_number(1), metavar="INTEGER", help="How many times to inject each fault, at most."
        ),
    ] = 30,
    lasts: Annotated[
        int, typer.Option("--lasts", parser=whole_number(1), metavar="INTEGER", help="Observations that a fault lasts.")
    ] = 200,
    seconds: Annotated[
        float, typer.Option("--seconds", min=1.0, help="Inject no more after this time for each signal.")
    ] = 300.0,
    settings: dict[str, Any],
) -> None:
    """Show which faults would be found in the signals of files, how soon, and which would not."""
    check_settings(settings, interval_known=False)
    every = number_or_text(reading.get("every"))
    reading |= {"every": every, "interval": settings["interval"], "zone": settings["zone"]}
    failed = False
    for file in files:
        try:
            with read_signals(file, **reading) as signals:
                for number in range(len(signals)):
                    failed |= not _shown(signals[number], settings, cases=cases, lasts=lasts, seconds=seconds)
        except (DataError, OSError, ImportError, MemoryError, TypeError, ValueError) as error:
            say(f"{label_of(file)}: {in_options(error)}")
            failed = True
    raise typer.Exit(Exit.FAILED if failed else Exit.DONE)


def _shown(signal: Signal, settings: dict[str, Any], **limits: Any) -> bool:
    """Print what can be found in a signal; false if that cannot be told, with a message that says why."""
    try:
        found = _measured(signal, settings, **limits)
    except (TypeError, ValueError) as error:
        say(f"{signal.name}: {in_options(error)}")
        return False
    console().print(f"{signal.name}: {found.cases} case{'s' if found.cases > 1 else ''} of each fault", markup=False)
    for sentence in found.sentences:
        console().print(f"  {sentence}", markup=False, soft_wrap=True)
    return True


def _measured(signal: Signal, settings: dict[str, Any], **limits: Any) -> Detectability:
    detector = Detector(**settings)
    detector.fleet.complete_from(features=signal.features, interval=signal.interval, observations=signal.observed)
    with progress() as bar:
        task = bar.add_task(f"judging {len(signal):,} observations", total=None)

        def tell(done: int, places: int) -> None:
            bar.update(task, completed=done, total=places, description="places with faults")

        return measure(detector, signal.values, signal.times, **limits, progress=tell)
