"""What happened in a period, on one page: `tocsin report`."""

from tocsin_monitor.report.facts import Period, Report, gather
from tocsin_monitor.report.page import report_page, summary_of

__all__ = ["Period", "Report", "gather", "report_page", "summary_of"]
