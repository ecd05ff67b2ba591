"""Tables, figures and a page of what a benchmark has found."""

from tocsin_bench.report.writing import summary_tables, write_report

__all__ = ["summary_tables", "write_report"]
