"""The settings table for the documentation: `python -m tocsin.detection.settings_page` prints it."""

import sys

from tocsin.detection.declaration import Setting, declared
from tocsin.detection.settings import DetectorSettings


def settings_table() -> str:
    """All detector settings as a Markdown table."""
    rows = [
        f"| `{one.name}` | {_default(one)} | {one.accepted} | {one.help} |"
        for one in declared(DetectorSettings).values()
    ]
    return "\n".join(["| setting | default | accepted | meaning |", "|---|---|---|---|", *rows])


def _default(one: Setting) -> str:
    if one.default is None:
        return one.rule.unset
    return f'"{one.default}"' if isinstance(one.default, str) else str(one.default)


if __name__ == "__main__":
    sys.stdout.write(settings_table() + "\n")
