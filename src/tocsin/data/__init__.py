"""Reads files, frames and streams, and writes results. Gaps and bad values are explicit, never dropped or made up."""

from tocsin.data.columns import Columns
from tocsin.data.frames import Origin, frame_like, is_frame, signals_from_frame
from tocsin.data.lines import LineError, LineParser
from tocsin.data.numbers import MISSING, read_numbers
from tocsin.data.options import ReadSummary
from tocsin.data.problems import KINDS, DataError, DataWarning, Problem, ProblemLog, merge_problems
from tocsin.data.reading import Signals, read_signals
from tocsin.data.resampling import AGGREGATES, Resampler, aggregated, resample
from tocsin.data.sources import WESTERN, find_encoding
from tocsin.data.timeline import (
    LONGEST_GAP,
    Interval,
    ParsedObservation,
    Signal,
    duration_text,
    infer_interval,
    missing_steps,
    parse_duration,
)
from tocsin.data.times import format_times, parse_time
from tocsin.data.writers import Writer, check_writable, open_writer

__all__ = [
    "AGGREGATES",
    "KINDS",
    "LONGEST_GAP",
    "MISSING",
    "WESTERN",
    "Columns",
    "DataError",
    "DataWarning",
    "Interval",
    "LineError",
    "LineParser",
    "Origin",
    "ParsedObservation",
    "Problem",
    "ProblemLog",
    "ReadSummary",
    "Resampler",
    "Signal",
    "Signals",
    "Writer",
    "aggregated",
    "check_writable",
    "duration_text",
    "find_encoding",
    "format_times",
    "frame_like",
    "infer_interval",
    "is_frame",
    "merge_problems",
    "missing_steps",
    "open_writer",
    "parse_duration",
    "parse_time",
    "read_numbers",
    "read_signals",
    "resample",
    "signals_from_frame",
]
