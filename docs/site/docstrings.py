"""Docstrings as Markdown: they are written to be read in a terminal."""

import re
from typing import Any

import griffe

HEADING = re.compile(r"^(\w+)\n-{3,}$", re.MULTILINE)
PARAMETERS = re.compile(r"^Parameters\n-+\n((?:.+\n?)+)", re.MULTILINE)
PARAMETER = re.compile(r"^(\w[\w, ]*) : ", re.MULTILINE)
# Markdown takes `>>>` for a quotation.
EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).+)*", re.MULTILINE)
INDENTED = re.compile(r"::$", re.MULTILINE)


def as_markdown(text: str) -> str:
    """Headings, parameters, examples and indented blocks in the words of Markdown.

    >>> print(as_markdown("Parameters\\n----------\\nsize : of it\\n"))
    **Parameters**
    <BLANKLINE>
    - `size`: of it
    <BLANKLINE>
    """
    text = PARAMETERS.sub(lambda found: "**Parameters**\n\n" + PARAMETER.sub(r"- `\1`: ", found[1]), text)
    text = HEADING.sub(r"**\1**\n", text)
    return INDENTED.sub(":", EXAMPLE.sub(lambda lines: f"```pycon\n{lines[0]}\n```", text))


class MarkdownDocstrings(griffe.Extension):
    """Lets mkdocstrings read docstrings as Markdown."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for each object that has been read."""
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)
