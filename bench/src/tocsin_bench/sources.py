"""Which file results belong to: results are stored by name, and another folder may have other files of that name."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from tocsin_bench.files import UnusableFileError, read_file
from tocsin_bench.results import BenchmarkResults, JudgedFile


def source_of(path: Path) -> JudgedFile:
    """A file in its current state."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return JudgedFile(path.stem, str(path.resolve()), path.stat().st_size, digest)


def refuse_other_files(paths: Sequence[Path], results: BenchmarkResults) -> None:
    """Reject files if there are results for other files of the same name; their folder does not matter."""
    sources = results.sources()
    done = {file for file, _, _ in results.finished()}
    differences = []
    for path in paths:
        if path.stem in sources:
            differences.append(_difference(path, sources[path.stem]))
        elif path.stem in done:
            differences.append(_difference_from_signal(path, results.signal_of(path.stem)))
    found = [difference for difference in differences if difference]
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise ValueError(
            f"{results.folder} holds results of other files with the same names{more}: {found[0]}; "
            "take another folder for the results"
        )


def _difference(path: Path, known: JudgedFile) -> str:
    """How a file differs from the one with results, if it does."""
    try:
        now = source_of(path)
    except OSError:
        return ""  # it is skipped, with this as the reason
    if now.content == known.content:
        return ""
    return f"{path.stem} was {_in_words(known)} and is now {_in_words(now)}"


def _in_words(source: JudgedFile) -> str:
    return f"{source.path} ({source.size} bytes, sha256 {source.sha256[:8]})"


def _difference_from_signal(path: Path, signal: Path) -> str:
    """The same for results older than the notes on where they come from: what was judged is with the traces."""
    try:
        file = read_file(path)
    except UnusableFileError:
        return ""  # it is skipped, with this as the reason
    try:
        with signal.open("rb") as kept, np.load(kept) as was:
            same = np.array_equal(was["values"], file.values, equal_nan=True) and np.array_equal(
                was["labels"], file.labels
            )
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        return f"nothing tells whether {path} is the one that was judged: {error}"
    return "" if same else f"{path} is not the one that was judged, whose values are in {signal}"
