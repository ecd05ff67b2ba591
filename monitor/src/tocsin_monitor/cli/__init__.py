"""The monitor's commands, which appear in `tocsin --help` once it is installed. Each is imported only when called."""

from tocsin.cli.application import ListedCommand

_ABOUT = {
    "serve": "Run the monitor: observations in by HTTP, MQTT, Prometheus or files; a dashboard and alerts out.",
    "status": "Ask a running monitor how it is doing: signals, rates, incidents, sources, sinks, store.",
    "reload": "Let a running monitor read its settings file again.",
    "sinks": "Try out where a running monitor sends incidents.",
    "doctor": "Check the settings and everything around the monitor, and say what to do about each problem.",
    "import": "Import history into a running monitor: it is learned and judged, but sends no alerts.",
    "export": "Export the monitor's data to files, as a consistent snapshot. The monitor may keep running.",
    "report": "Report on a week of the monitor: incidents, promised and raised alarms, and what took the most "
    "attention.",
    "mcp": "Serve a running monitor to an agent over standard input and output (Model Context Protocol).",
    "config": "Check the monitor's settings, or print all of them.",
    "token": "Create, list and revoke the monitor's tokens.",
    "backup": "Back up all of the monitor's data to one file, as a consistent snapshot. The monitor may keep running.",
    "restore": "Restore a backup into an empty store in any supported database. The monitor must not be running.",
}
#: The modules of commands that share one.
_SHARED = {
    **dict.fromkeys(("import", "export", "report", "backup", "restore"), "data"),
    "doctor": "config",
    "reload": "status",
}

COMMANDS = {
    name: ListedCommand(f"tocsin_monitor.cli.{_SHARED.get(name, name)}", "The monitor", about)
    for name, about in _ABOUT.items()
}
