"""The documentation site: it builds without a warning, and what the reference must hold is there."""

import importlib
import importlib.util
import os
import re
import subprocess
import sys
from html import unescape
from inspect import isclass, isroutine
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [Path(sys.executable).parent / "mkdocs", "build", "--strict", "--site-dir", folder]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder


def text_of(page):
    return unescape(re.sub(r"<[^>]+>", "", page.read_text()))


@pytest.mark.full
@pytest.mark.parametrize("module", ["tocsin", "tocsin.data", "tocsin.detection", "tocsin.evaluation", "tocsin.testing"])
def test_the_reference_has_every_public_class_and_function(site, module):
    page = (site / "reference" / "python.html").read_text()
    names = importlib.import_module(module)
    for name in names.__all__:
        thing = getattr(names, name)
        if isclass(thing) or isroutine(thing):
            assert f'id="{thing.__module__}.{thing.__qualname__}"' in page, name


@pytest.mark.full
def test_the_reference_has_every_metric_and_route(site):
    metrics, routes = (text_of(site / "reference" / f"{name}.html") for name in ("metrics", "routes"))
    assert "tocsin_observations" in metrics
    assert "POST /api/v1/observations" in routes


@pytest.mark.full
def test_pages_load_nothing_from_elsewhere(site):
    for page in site.rglob("*.html"):
        loaded = re.findall(r'<(?:script|img|link|iframe)[^>]*(?:src|href)="(https?:[^"]+)"', page.read_text())
        assert not [address for address in loaded if "canonical" not in address], page.name


def test_docstrings_become_markdown():
    spec = importlib.util.spec_from_file_location("docstrings", ROOT / "docs" / "site" / "docstrings.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    written = (
        "Text::\n\n    code\n\nParameters\n----------\nsize : of it,\n    and more.\n\nExamples\n--------\n>>> 1\n1\n"
    )
    assert module.as_markdown(written) == (
        "Text:\n\n    code\n\n**Parameters**\n\n- `size`: of it,\n    and more.\n\n"
        "**Examples**\n\n```pycon\n>>> 1\n1\n```\n"
    )
