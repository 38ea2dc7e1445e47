"""Reports: what a saved workflow has found, as one HTML page that needs no network."""

from mercer.app.report.write import REPORTED, build_report, check_page, write_report

__all__ = ["REPORTED", "build_report", "check_page", "write_report"]
