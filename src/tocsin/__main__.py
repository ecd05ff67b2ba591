"""`python -m tocsin`: the same as the command `tocsin`."""

from tocsin.cli import app

app(prog_name="tocsin")
