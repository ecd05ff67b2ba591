"""The list of commands: true, in order, and there at once."""

import os
import subprocess
import sys

import pytest
import typer.main

from tests.cli.calling import invoke, run_process
from tocsin.cli import app
from tocsin.cli.application import commands as listed
from tocsin.cli.application import load


def test_the_list_says_what_the_commands_say():
    load()
    commands = typer.main.get_group(app).commands
    assert set(commands) == set(listed())
    for name, entry in listed().items():
        assert commands[name].help.split("\n")[0] == entry.help, name


def test_commands_are_listed_in_the_order_of_need():
    lines = invoke("--help").output
    places = [lines.index(f" {name} ") for name in listed()]
    assert places == sorted(places)
    assert list(listed())[:3] == ["demo", "detect", "watch"]


@pytest.mark.slow
def test_help_imports_nothing_heavy():
    script = "import sys; from tocsin.cli import app; app(['--help'], standalone_mode=False); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    heavy = {"numpy", "numba", "matplotlib", "narwhals", "pyarrow", "pydantic", "tocsin.detection", "tocsin.data"}
    assert not heavy & set(done.stdout.split())


def test_an_unknown_command_is_refused():
    done = run_process("detct")
    assert done.returncode == 2
    assert "detct" in done.stderr


@pytest.mark.full
def test_shells_complete_commands_and_options():
    def completed(text):
        words = text.split(" ")
        environment = {
            **os.environ,
            "_TOCSIN_COMPLETE": "complete_bash",
            "COMP_WORDS": text,
            "COMP_CWORD": str(len(words) - 1),
        }
        return run_process(env=environment).stdout.split()

    assert completed("tocsin de") == ["demo", "detect", "detectable"]
    assert "--report" in completed("tocsin detect --re")
    assert "run" in completed("tocsin bench ")
