"""The notebooks in the docs: they run from top to bottom, and hold no outputs."""

import ast
import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parent.parent / "docs" / "notebooks").glob("*.ipynb"))


def cells_of(path):
    notebook = json.loads(path.read_text())
    assert notebook["nbformat"] == 4
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run(cell, names):
    """What a notebook would show: the value of the last line, in every way that it offers to show itself."""
    code = ast.parse("".join(cell["source"]))
    last = code.body.pop() if code.body and isinstance(code.body[-1], ast.Expr) else None
    exec(compile(code, "cell", "exec"), names)
    if last is None:
        return None
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    ways = [getattr(value, way) for way in ("_repr_html_", "_repr_png_") if hasattr(value, way)]
    assert not ways or any(way() for way in ways)
    return value


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_cleared(path):
    for cell in cells_of(path):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None


@pytest.mark.full
def test_the_notebook_runs():
    names = {}
    (path,) = NOTEBOOKS
    shown = [run(cell, names) for cell in cells_of(path)]
    found = names["result"].incident_list
    assert any(one.first <= 2500 <= one.last for one in found)  # the spike
    assert any(3200 <= one.first < 3300 for one in found)  # the stuck sensor
    assert shown[1] is names["result"]
    assert sum(value is not None for value in shown) >= 9
    assert bool(shown[5].iloc[-1])  # 7.5 alarms
    machine = shown[6]
    assert machine.features == ("vibration", "heat")
    assert any("heat" in one.features[:1] and 3000 <= one.first < 3050 for one in machine.incident_list)
    assert list(names["results"]) == ["north", "south"]
    assert shown[8].interval == 3600
    assert shown[9] == -1
    quiet, strange = shown[10]
    assert quiet < 1 < strange
