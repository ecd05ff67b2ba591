"""The commands of the bench in the list of commands."""

from tocsin.cli.application import METHODS, ListedCommand

COMMANDS = {
    "bench": ListedCommand(
        "tocsin_bench.cli", METHODS, "Run detectors on folders of labelled files (TSB-AD) and report the results."
    )
}
