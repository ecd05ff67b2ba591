"""Reads files, frames and streams, and writes results. Gaps and bad values are explicit, never dropped or made up."""

from tocsin.data.assembly import ReadSummary
from tocsin.data.guarded import memory_of_machine
from tocsin.data.leftovers import check_room, clear_leftovers
from tocsin.data.lines import LineError, LineParser
from tocsin.data.numbers import MISSING, read_numbers
from tocsin.data.problems import KINDS, DataError, DataWarning, Problem, ProblemLog, merge_problems
from tocsin.data.reading import Origin, Signals, frame_like, is_frame, read_signals, signals_from_frame
from tocsin.data.sources import WESTERN, find_encoding
from tocsin.data.tables import Columns
from tocsin.data.timeline import (
    AGGREGATES,
    LONGEST_GAP,
    Interval,
    ParsedObservation,
    Resampler,
    Signal,
    Timeline,
    aggregated,
    duration_text,
    infer_interval,
    missing_steps,
    parse_duration,
    resample,
)
from tocsin.data.times import format_times, parse_time, parse_times
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
    "Timeline",
    "Writer",
    "aggregated",
    "check_room",
    "check_writable",
    "clear_leftovers",
    "duration_text",
    "find_encoding",
    "format_times",
    "frame_like",
    "infer_interval",
    "is_frame",
    "memory_of_machine",
    "merge_problems",
    "missing_steps",
    "open_writer",
    "parse_duration",
    "parse_time",
    "parse_times",
    "read_numbers",
    "read_signals",
    "resample",
    "signals_from_frame",
]
