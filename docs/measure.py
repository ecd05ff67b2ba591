"""Tables of numbers in the docs, made by the commands that they name: `python -m docs.measure NAME FOLDER...`.

Runs the command of a table on the folders that it needs, and writes the result between the table's markers in its page,
with the fingerprint of what was measured: the network's weights, the defaults, constants and views of the detector.
`tests/test_docs.py` compares each recorded fingerprint with that of the code, so a table cannot be older than a change
of these. `python -m docs.measure` lists the tables. Tables without markers are not made this way: their pages say what
they were measured with.
"""

import argparse
import csv
import hashlib
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import tocsin
from tocsin.constants import Constants
from tocsin.detection import DetectorSettings
from tocsin.detection.paper.scoring import PAPER_OPTIONS
from tocsin.detection.settings.declaration import declared
from tocsin.detection.settings.detector_settings import VIEWS
from tocsin.detection.views import make_view
from tocsin_bench.methods import DETECTOR_SETTINGS
from tocsin_bench.rivals import RIVALS

DOCS = Path(__file__).resolve().parent
WEIGHTS = Path(tocsin.__file__).parent / "forecasting" / "embedded" / "weights.npz"
OF_DATA_SETS = "report/tables/dataset-*.csv"
MARKED = re.compile(r"<!-- measured: (\S+) (\w+) -->\n(.*?)<!-- end of measured -->\n", re.DOTALL)


def rows_of(out: Path, result: str) -> list[dict[str, str]]:
    """The rows of all files that match; `data set` says of which file each is."""
    return [row for path in sorted(out.glob(result)) for row in _rows(path)]


def beside_rivals(out: Path, result: str) -> list[dict[str, str]]:
    """The rows of `tocsin`, each with the best of the simple rivals on its data set, and the mean over data sets."""
    found = []
    for path in sorted(out.glob(result)):
        by_method = {row["method"]: row for row in _rows(path)}
        rivals = by_method.keys() & RIVALS.keys()
        best = {f"best {name}": max((by_method[rival][name] for rival in rivals), key=float) for name in BESIDE}
        found.append(by_method["tocsin"] | best)
    names = [name for name, _ in DETECTOR_METRICS]
    mean = {name: str(statistics.fmean(float(row[name]) for row in found)) for name in names if "best" not in name}
    return [*found, dict.fromkeys(names, "") | {"data set": "mean", "files ok": ""} | mean]


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return [{"data set": path.stem.removeprefix("dataset-"), **row} for row in csv.DictReader(file)]


@dataclass(frozen=True)
class Measured:
    """A table of `page`: what `command` writes to `result` in its folder {out}, or the last line that it prints.

    `result` may match several files, of which `rows` makes rows. `columns` are their headings, with those in the page;
    the first `named` of them name the rows. With `paper`, what the paper prints for a cell stands in parentheses.
    """

    page: str
    command: str
    result: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    decimals: int = 3
    named: int = 1
    paper: bool = False
    rows: Callable[[Path, str], list[dict[str, str]]] = rows_of

    def measure(self, folders: Sequence[str], out: Path) -> str:
        """Run the command, and return the table."""
        command = self.command.format(*map(shlex.quote, folders), out=shlex.quote(str(out)))
        # The programs beside this Python come first.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        done = subprocess.run(
            command, shell=True, cwd=DOCS.parent, env={**os.environ, "PATH": path}, check=True, stdout=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        if not self.result:
            return f"\n    {done.stdout.splitlines()[-1]}\n\n"
        lines = ["| " + " | ".join(heading for _, heading in self.columns) + " |", "|---" * len(self.columns) + "|"]
        lines += ["| " + " | ".join(self._cells(row)) + " |" for row in self.rows(out, self.result)]
        return "\n" + "\n".join(lines) + "\n\n"

    def _cells(self, row: Mapping[str, str]) -> list[str]:
        names = [name for name, _ in self.columns]
        numbers = [self._number(row[name]) for name in names[self.named :]]
        if self.paper:
            printed = [self._number(row.get(f"{name} paper", "")) for name in names[self.named :]]
            numbers = [f"{ours} ({theirs})" if theirs else ours for ours, theirs in zip(numbers, printed, strict=True)]
        return [*(row[name] for name in names[: self.named]), *numbers]

    def _number(self, text: str) -> str:
        is_count = text.isdigit() and self.decimals > 1  # where tenths are shown, 58 is a score
        return text if is_count or not text else f"{float(text):.{self.decimals}f}"


METRICS = tuple((name, name) for name in ("PA-F1", "Affiliation-F", "FPR", "CalErr", "AUC-PR", "VUS-PR"))


BESIDE = ("VUS-PR", "events found")
DETECTOR_METRICS = (
    ("PA-F1", "PA-F1"), ("Affiliation-F", "Affiliation-F"), ("CalErr", "CalErr"), ("VUS-PR", "VUS-PR"),
    ("best VUS-PR", "best rival"), ("events found", "events found"), ("best events found", "best rival"),
)  # fmt: skip

TABLES = {
    "detector": Measured(
        "results.md",
        "tocsin bench run {0} {1} --out {out} --method tocsin --method tocsin-light --method matrix-profile-64 "
        "--method regression-16 --method z-score-288 --method seasonal-naive --method ewma-288 --method z-score-100 "
        "&& tocsin bench report {out} --no-plot",
        OF_DATA_SETS,
        (("data set", "data set"), ("files ok", "files"), *DETECTOR_METRICS),
        named=2,
        rows=beside_rivals,
    ),
    "tsb-ad": Measured(
        "results.md",
        "tocsin bench run {0} --out {out} --protocol tsb-ad --forecaster embedded:context_length=52 --method tocsin "
        "--method tocsin-light --method w1-acas --method matrix-profile-64 --method regression-16 --method z-score-288 "
        "--method seasonal-naive --method ewma-288 --method z-score-100 && tocsin bench report {out} --no-plot",
        "report/tables/tsb-ad.csv",
        (("method", ""), ("VUS-PR after `tr`", "VUS-PR after `tr`"), ("VUS-PR, whole file", "whole file"),
         ("AUC-PR after `tr`", "AUC-PR after `tr`"), ("AUC-PR, whole file", "whole file"),
         ("Affiliation-F, whole file", "Affiliation-F, whole file")),
    ),
    "nab": Measured(
        "results.md",
        "tocsin bench nab {0} --out {out}",
        "nab.csv",
        (("method", ""), ("standard", "standard"), ("low FP", "low FP"), ("low FN", "low FN")),
        decimals=1,
    ),
    "ucr": Measured(
        "results.md",
        "tocsin bench ucr {0} --out {out}",
        "ucr.csv",
        (("method", ""), ("accuracy", "accuracy")),
    ),
    "paper": Measured(
        "results.md",
        "tocsin bench run {0} --out {out} --forecaster embedded:context_length=52 --method w1-acas --method gaussian "
        "--method conformal --method fixed-window --method exponential-decay && tocsin bench report {out} --no-plot",
        OF_DATA_SETS,
        (("data set", "data set"), ("method", "method"), *METRICS, ("AUC-PR at 250 quantiles", "at 250 quantiles")),
        named=2,
        paper=True,
    ),
    "genesis": Measured(
        "results.md",
        "tocsin bench run {0} --dataset Genesis --out {out} --forecaster embedded:context_length=52 --method tocsin "
        "--method tocsin-light --method w1-acas --method gaussian --method conformal --method fixed-window "
        "&& tocsin bench report {out} --no-plot",
        "report/tables/multivariate.csv",
        (("method", "method"), *METRICS),
        paper=True,
    ),
    "ablation": Measured(
        "results.md",
        "tocsin bench ablate {0} --out {out}",
        "ablation-means.csv",
        (("setting", "setting"), ("value", "value"), *METRICS),
        named=2,
    ),
    "real": Measured("benchmarks.md", "python benchmarks/real.py --nab {0} --skab {1}"),
    "context": Measured(
        "scorers.md",
        "python benchmarks/context.py {0} {1} --limit 3 --out {out}",
        "context.csv",
        (("weights", "weights"), ("VUS-PR", "VUS-PR"), ("better on", "better on"), ("worse on", "worse on"),
         ("PA-F1", "PA-F1"), ("Aff-F", "Affiliation-F"), ("CalErr", "CalErr"),
         *((name, name) for name in ("IOPS", "MSL", "NAB", "NEK", "SMAP", "UCR", "WSD", "YAHOO"))),
    ),
}  # fmt: skip
"""The tables that are made this way, by name."""


def fingerprint() -> str:
    """What measured numbers depend on: the weights, defaults that are not off, constants, and the views' streams."""
    on = {name: one.default for name, one in declared(DetectorSettings).items() if one.default}
    parts = [
        on,
        [str(make_view(name).streams) for name in VIEWS],
        PAPER_OPTIONS,
        DETECTOR_SETTINGS,
        Constants()._asdict(),
        hashlib.sha256(WEIGHTS.read_bytes()).hexdigest(),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:12]


def require_same_code(out: Path) -> None:
    """Refuse a folder with results of other weights, defaults or constants."""
    out.mkdir(parents=True, exist_ok=True)
    note = out / "fingerprint"
    if not any(out.iterdir()):
        note.write_text(fingerprint())
    if not note.is_file() or note.read_text() != fingerprint():
        raise SystemExit(f"{out} holds results of other code than today's: give --out another folder")


def recorded() -> list[tuple[str, str, str]]:
    """The page, name and fingerprint of every table between markers."""
    return [
        (page.name, *found.group(1, 2))
        for page in sorted(DOCS.glob("*.md"))
        for found in MARKED.finditer(page.read_text(encoding="utf-8"))
    ]


def write(name: str, table: str) -> Path:
    """Put a table between its markers, with the fingerprint of today's code."""
    page = DOCS / TABLES[name].page
    text = page.read_text(encoding="utf-8")
    found = [one for one in MARKED.finditer(text) if one[1] == name]
    if len(found) != 1:
        raise ValueError(f"{page} must have one table between the markers of {name}, found {len(found)}")
    marked = f"<!-- measured: {name} {fingerprint()} -->\n{table}<!-- end of measured -->\n"
    page.write_text(text[: found[0].start()] + marked + text[found[0].end() :], encoding="utf-8")
    return page


def main() -> None:
    """Measure one table, or list them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", choices=TABLES, help="a table; without it, they are listed")
    parser.add_argument("folders", nargs="*", help="the folders of files that its command takes")
    parser.add_argument("--out", type=Path, help="where the command keeps its results, so that it can be interrupted")
    given = parser.parse_args()
    if given.name is None:
        now = fingerprint()
        states = {name: "up to date" if measured == now else "older than the code" for _, name, measured in recorded()}
        for name, one in TABLES.items():
            print(f"{name}: {one.page}, {states.get(name, 'not in its page')}: {one.command}")
        return
    with tempfile.TemporaryDirectory() as scratch:
        out = given.out or Path(scratch)
        require_same_code(out)
        table = TABLES[given.name].measure(given.folders, out)
    print(f"written to {write(given.name, table)}")


if __name__ == "__main__":
    main()
