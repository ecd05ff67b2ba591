"""The pages a user reads: every example runs, and nothing that exists is left out."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main
from docs import measure

from tests.cases import full
from tocsin import NONCONFORMITIES, available_forecasters
from tocsin.cli import app
from tocsin.cli.application import load
from tocsin.conformal import MERGES, SCORERS
from tocsin.data import KINDS
from tocsin.detection.settings.arguments import settings_table
from tocsin.evaluation import METHODS, SCENARIOS
from tocsin_bench.ablation import SETTINGS as ABLATED
from tocsin_bench.baselines import BASELINES
from tocsin_bench.methods import METHODS as BENCH_METHODS
from tocsin_bench.rivals import RIVALS

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


EXAMPLES = [page for page in PAGES if "```pycon" in page.read_text()]
#: What these show takes long; the README has the same in short.
LONG = ("detector.md", "python.md")


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [full(page) if page.name in LONG else page for page in EXAMPLES], ids=lambda page: page.name
)
def test_examples_print_what_they_say(page):
    examples = "\n".join(re.findall(r"```pycon\n(.*?)```", page.read_text(), flags=re.DOTALL))
    test = doctest.DocTestParser().get_doctest(examples, {}, page.name, str(page), 0)
    report = []
    assert doctest.DocTestRunner().run(test, out=report.append).failed == 0, "".join(report)


def console_blocks(page):
    return re.findall(r"```console\n(.*?)```", page.read_text(), flags=re.DOTALL)


@pytest.mark.full
@pytest.mark.parametrize("page", [page for page in PAGES if console_blocks(page)], ids=lambda page: page.name)
def test_commands_print_what_they_say(page, tmp_path):
    """Lines after a command must stand in its output; `...` stands for anything."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for block in console_blocks(page):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *expected = part.strip().splitlines()
            done = subprocess.run(
                command, shell=True, cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True
            )
            assert done.returncode == 0, f"{command}: {done.stderr}"
            for line in expected:
                pattern = re.escape(line.strip()).replace(re.escape("..."), ".*")
                assert re.search(pattern, done.stdout), f"{command}: {line!r} is not in\n{done.stdout}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_nothing_is_left_to_fill_in(page):
    assert not re.findall(r"^[A-Z]{4,}$|TODO|FIXME|XXX", page.read_text(), flags=re.MULTILINE)


def test_the_readme_has_examples():
    assert (ROOT / "README.md").read_text().count(">>>") > 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


def commands_of(name, command):
    """All commands under one, those of groups included, by what one types."""
    for part, inner in getattr(command, "commands", {}).items():
        yield from commands_of(f"{name} {part}", inner)
    if not hasattr(command, "commands"):
        yield name, command


def test_every_option_of_every_command_is_documented():
    pages = "\n".join(page.read_text() for page in PAGES)
    load()
    commands = dict(commands_of("tocsin", typer.main.get_command(app)))
    assert "tocsin bench run" in commands
    for name, command in commands.items():
        assert name in pages
        for parameter in command.params:
            if parameter.param_type_name == "argument":
                continue
            for option in (*parameter.opts, *parameter.secondary_opts):
                assert f"`{option}`" in pages, f"{name} {option}"


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("scorers.md", SCORERS),
        ("merges.md", MERGES),
        ("simulation.md", SCENARIOS),
        ("simulation.md", METHODS),
        ("bench.md", BENCH_METHODS),
        ("bench.md", RIVALS),
        ("bench.md", ABLATED),
        ("baselines.md", BASELINES),
        ("detector.md", NONCONFORMITIES),
        ("forecasters.md", available_forecasters()),
        ("data.md", KINDS),
    ],
)
def test_every_name_is_documented(page, names):
    text = (ROOT / "docs" / page).read_text()
    for name in names:
        assert name in text, name


def test_merges_are_documented_with_their_formula_and_guarantee():
    rows = {}
    for line in (ROOT / "docs" / "merges.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and cells[0].startswith("`") and cells[0] != "`how`":
            rows[cells[0].strip("`")] = cells[1:]
    assert rows.keys() == MERGES.keys()
    for name, (formula, guarantee) in rows.items():
        assert formula.startswith(MERGES[name].formula), name
        assert guarantee == MERGES[name].guarantee.name.lower().replace("_", " "), name


def test_every_parameter_of_every_scorer_is_documented():
    text = (ROOT / "docs" / "scorers.md").read_text()
    for scorer in SCORERS.values():
        for parameter in scorer()._parameters():
            assert f"`{parameter}`" in text, parameter


def test_the_table_of_settings_is_that_of_the_declaration():
    text = (ROOT / "docs" / "detector.md").read_text()
    assert settings_table() in text, "put in what `python -m tocsin.detection.settings.arguments` prints"


def test_changelog_names_the_current_work():
    assert "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text()


def test_measured_tables_are_of_today_s_weights_and_defaults():
    """Run `python -m docs.measure NAME FOLDER...` again for a table that is older, or say on its page what it is of."""
    found = measure.recorded()
    assert len({name for _, name, _ in found}) == len(found) > 0
    for page, name, fingerprint in found:
        assert measure.TABLES[name].page == page
        assert fingerprint == measure.fingerprint(), f"{page}: {name} is older than the code"


def test_a_fingerprint_changes_with_a_default_and_not_with_an_option_that_is_off(monkeypatch):
    before = measure.fingerprint()
    assert before == measure.fingerprint()
    monkeypatch.setitem(measure.PAPER_OPTIONS, "batch", 11)
    assert measure.fingerprint() != before
    monkeypatch.undo()
    settings = measure.declared(measure.DetectorSettings)
    monkeypatch.setattr(measure, "declared", lambda unused: {**settings, "new": settings["zone"]})
    assert measure.fingerprint() == before
    monkeypatch.setattr(measure, "declared", lambda unused: {**settings, "new": settings["gap"]})
    assert measure.fingerprint() != before


def test_a_measured_table_of_data_sets_has_the_paper_s_numbers_beside_ours(tmp_path):
    (tmp_path / "dataset-A.csv").write_text("method,setting,PA-F1,PA-F1 paper,n\none,0.0001,0.12345,0.2,7\n")
    (tmp_path / "dataset-B.csv").write_text("method,setting,PA-F1,n\none,0.5,,8\n")
    columns = tuple((name, name) for name in ("data set", "setting", "PA-F1", "n"))
    made = measure.Measured("page.md", "true", "dataset-*.csv", columns, named=2, paper=True).measure([], tmp_path)
    assert made.splitlines()[3:5] == ["| A | 0.0001 | 0.123 (0.200) | 7 |", "| B | 0.5 |  | 8 |"]


def test_the_detector_s_table_has_the_best_rival_and_means(tmp_path):
    for name, own in (("A", 0.2), ("B", 0.4)):
        rows = [("tocsin", own), ("z-score-100", own + 0.05), ("damp", own + 0.03), ("w1-acas", own + 0.5)]
        text = "".join(f"{method},7/7,1,1,0,{value},1\n" for method, value in rows)
        heading = "method,files ok,PA-F1,Affiliation-F,CalErr,VUS-PR,events found\n"
        (tmp_path / f"dataset-{name}.csv").write_text(heading + text)
    first, second, mean = measure.beside_rivals(tmp_path, "dataset-*.csv")
    assert (first["data set"], first["VUS-PR"], float(first["best VUS-PR"])) == ("A", "0.2", pytest.approx(0.25))
    assert float(second["best VUS-PR"]) == pytest.approx(0.45)
    assert (mean["data set"], float(mean["VUS-PR"]), mean["best VUS-PR"]) == ("mean", pytest.approx(0.3), "")


def test_a_measured_table_goes_between_its_markers(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- measured: one 0 -->\nold\n<!-- end of measured -->\nafter\n")
    printed = measure.Measured("page.md", "echo first; echo a={0}")
    made = measure.Measured("page.md", "printf 'x,y\\nname,0.12345\\n' > {out}/t.csv", "t.csv", (("x", ""), ("y", "Y")))
    monkeypatch.setattr(measure, "DOCS", tmp_path)
    monkeypatch.setattr(measure, "TABLES", {"one": printed})
    measure.write("one", printed.measure(["b c"], tmp_path))
    now = measure.fingerprint()
    assert page.read_text() == f"before\n<!-- measured: one {now} -->\n\n    a=b c\n\n<!-- end of measured -->\nafter\n"
    measure.write("one", made.measure([], tmp_path))
    assert "\n|  | Y |\n|---|---|\n| name | 0.123 |\n" in page.read_text()
    assert measure.recorded() == [("page.md", "one", now)]
    with pytest.raises(SystemExit, match="results of other code"):
        measure.require_same_code(tmp_path)
    page.write_text("no markers")
    with pytest.raises(ValueError, match="must have one table"):
        measure.write("one", "")
