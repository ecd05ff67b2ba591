"""The monitor's commands, which appear in `tocsin --help` once it is installed. Each is imported only when called."""

from tocsin.cli.application import ListedCommand

_PANEL = "The monitor"
_HERE = "tocsin_monitor.cli"

COMMANDS = {
    "serve": ListedCommand(
        f"{_HERE}.serve",
        _PANEL,
        "Run the monitor: observations in by HTTP, MQTT, Prometheus or files; a dashboard and alerts out.",
    ),
    "status": ListedCommand(
        f"{_HERE}.status",
        _PANEL,
        "Ask a running monitor how it is doing: signals, rates, incidents, sources, sinks, store.",
    ),
    "reload": ListedCommand(
        f"{_HERE}.status",
        _PANEL,
        "Let a running monitor read its settings file again.",
    ),
    "doctor": ListedCommand(
        f"{_HERE}.config",
        _PANEL,
        "Check the settings and everything around the monitor, and say what to do about each problem.",
    ),
    "import": ListedCommand(
        f"{_HERE}.data",
        _PANEL,
        "Import history into a running monitor: it is learned and judged, but sends no alerts.",
    ),
    "export": ListedCommand(
        f"{_HERE}.data",
        _PANEL,
        "Export the monitor's data to files, as a consistent snapshot. The monitor may keep running.",
    ),
    "report": ListedCommand(
        f"{_HERE}.data",
        _PANEL,
        "Report on a week of the monitor: incidents, promised and raised alarms, and what took the most attention.",
    ),
    "mcp": ListedCommand(
        f"{_HERE}.mcp",
        _PANEL,
        "Serve a running monitor to an agent over standard input and output (Model Context Protocol).",
    ),
    "config": ListedCommand(f"{_HERE}.config", _PANEL, "Check the monitor's settings, or print all of them."),
    "token": ListedCommand(f"{_HERE}.token", _PANEL, "Create, list and revoke the monitor's tokens."),
    "backup": ListedCommand(
        f"{_HERE}.data",
        _PANEL,
        "Back up all of the monitor's data to one file, as a consistent snapshot. The monitor may keep running.",
    ),
    "restore": ListedCommand(
        f"{_HERE}.data",
        _PANEL,
        "Restore a backup into an empty store in any supported database. The monitor must not be running.",
    ),
}
