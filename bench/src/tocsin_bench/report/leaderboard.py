"""What TSB-AD publishes for single files: the VUS-PR over whole files of the entries of its leaderboard."""

import csv
from collections.abc import Sequence
from functools import cache
from importlib import resources

from tocsin_bench.report.summaries import MethodGroup, Summary, grouped
from tocsin_bench.results import WHOLE, MethodRun

METRIC = f"{WHOLE}vus_pr"
SHOWN = 6
"""How many entries stand in a table: the best on its files."""


def best_entries(groups: Sequence[MethodGroup]) -> list[Summary]:
    """The best entries on the files of these groups, chosen in hindsight; a file without a number was not tried."""
    files = {run.file: group for group in groups for run in group.runs}
    found = []
    for entry, scores in _published().items():
        members = []
        for about, names in grouped(files, lambda file: (files[file].dataset, files[file].several_features)).items():
            runs = [
                MethodRun(name, about[0], "", entry, metrics={METRIC: scores[name]})
                if name in scores
                else MethodRun(name, about[0], "", entry, status="skipped")
                for name in names
            ]
            members.append(MethodGroup(about[0], "", f"{entry} (published)", about[1], tuple(runs)))
        found.append(Summary("", members[0].method, tuple(members)))
    known = [summary for summary in found if summary.count("ok")]
    return sorted(known, key=lambda summary: -summary.spread(METRIC).mean)[:SHOWN]


@cache
def _published() -> dict[str, dict[str, float]]:
    """By entry and file."""
    with resources.files("tocsin_bench").joinpath("tsb_ad.csv").open(encoding="utf-8") as file:
        next(file)  # the source
        rows = list(csv.DictReader(file))
    return {
        entry: {row["file"]: float(row[entry]) for row in rows if row[entry]} for entry in rows[0] if entry != "file"
    }
