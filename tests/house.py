"""How large and how tangled the package is, in one line of numbers: `python -m tests.house`.

The last line is for scripts. The tables above it are for people:

- the lines and files of each room;
- the files whose functions run during `tocsin detect CLEAN.csv`. What runs only because a module is imported does not
  count, and compiled loops cannot be seen;
- import cycles: groups of modules that import each other, directly or not, at module level. Imports within functions
  can close further ones, which are listed but not counted;
- what the monitor imports from the library that the library does not offer: names that are in no `__all__` of the
  public packages, from modules that no page of the documentation names.
"""

import argparse
import ast
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: `make test` may leave the minutes that it took in this file.
TEST_MINUTES = ROOT / "build" / "test_minutes"
PUBLIC = ("", ".conformal", ".forecasting", ".detection", ".data", ".evaluation", ".reports")
MONITORS = ("tocsin_monitor",)
#: Known to everything else by their entry points only.
PLUGINS = ("tocsin.adapters", "tocsin.spark", "tocsin_monitor.plugins")
#: Modules for packages that add commands: all of their names are public.
FOR_COMMANDS = frozenset({"tocsin.cli.application", "tocsin.cli.options"})

# Records the files of the package in which a function is called, other than by the import of a module. Comprehensions
# and class bodies do not count as functions.
_RECORDER = """
import inspect, json, sys, threading
folders, target = json.loads(sys.argv[1]), sys.argv[2]
seen = set()
def ours(code):
    return code.co_filename.startswith(tuple(folders))
def record(frame, event, argument):
    if event == "call" and frame.f_code not in seen:
        caller = frame.f_back
        while caller and not (caller.f_code.co_name == "<module>" and ours(caller.f_code)):
            caller = caller.f_back
        if caller is None:
            seen.add(frame.f_code)
threading.setprofile(record)
sys.setprofile(record)
sys.argv = ["tocsin", *sys.argv[3:]]
try:
    from tocsin.cli import app
    app()
finally:
    sys.setprofile(None)
    called = [code for code in seen if code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.endswith("comp>")]
    with open(target, "w") as file:
        json.dump(sorted({code.co_filename for code in called if ours(code)}), file)
"""


@dataclass
class Module:
    """A module of the package, and what it imports: (module, name) pairs, with an empty name for a whole module."""

    name: str
    path: Path
    lines: int
    at_import: list[tuple[str, str]] = field(default_factory=list)
    in_functions: list[tuple[str, str]] = field(default_factory=list)
    offered: frozenset[str] = frozenset()  # its `__all__`

    @property
    def room(self) -> str:
        parts = self.name.split(".")
        return ".".join(parts[:2]) if self.path.name == "__init__.py" or len(parts) > 2 else parts[0]


def source_folders() -> list[Path]:
    """The source folders of all distributions in the repository."""
    return [ROOT / "src", ROOT / "monitor" / "src"]


def read_modules(folders: Iterable[Path]) -> dict[str, Module]:
    """All modules below these folders, by name."""
    modules = {}
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            text = path.read_text(encoding="utf-8")
            modules[name] = module = Module(name, path, text.count("\n"))
            _read_imports(ast.parse(text), module, within=False)
    return modules


def _read_imports(node: ast.AST, module: Module, *, within: bool) -> None:
    for child in ast.iter_child_nodes(node):
        found = module.in_functions if within else module.at_import
        if isinstance(child, ast.Import):
            found.extend((one.name, "") for one in child.names)
        elif isinstance(child, ast.ImportFrom):
            package = module.name if module.path.name == "__init__.py" else module.name.rpartition(".")[0]
            for _ in range(child.level - 1):
                package = package.rpartition(".")[0]
            base = ".".join(filter(None, (package if child.level else "", child.module)))
            found.extend((base, one.name) for one in child.names)
        elif isinstance(child, ast.If) and getattr(child.test, "id", "") == "TYPE_CHECKING":
            continue  # read by type checkers only
        elif isinstance(child, ast.Assign) and any(getattr(one, "id", "") == "__all__" for one in child.targets):
            module.offered = frozenset(ast.literal_eval(child.value))
        _read_imports(
            child, module, within=within or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        )


def imported_modules(imports: Iterable[tuple[str, str]], modules: Mapping[str, Module]) -> Iterator[str]:
    """The modules of the package among these imports."""
    for base, name in imports:
        whole = f"{base}.{name}"
        if whole in modules or base in modules:
            yield whole if whole in modules else base


def cycles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Groups of more than one module that reach each other: strongly connected components, by Tarjan's algorithm."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            at = stack.index(name)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    sys.setrecursionlimit(max(sys.getrecursionlimit(), 10 * len(graph)))
    for name in sorted(graph):
        if name not in index:
            visit(name)
    return found


def import_cycles(modules: Mapping[str, Module]) -> tuple[list[list[str]], list[list[str]]]:
    """The cycles at module level, and those that imports within functions add."""
    top = {name: set(imported_modules(one.at_import, modules)) - {name} for name, one in modules.items()}
    every = {
        name: top[name] | set(imported_modules(one.in_functions, modules)) - {name} for name, one in modules.items()
    }
    first = cycles(top)
    return first, [group for group in cycles(every) if group not in first]


def documented_modules(modules: Mapping[str, Module]) -> set[str]:
    """Modules that a page of the documentation names."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    named = {name for page in pages for name in re.findall(r"\btocsin\w*(?:\.\w+)+", page.read_text(encoding="utf-8"))}
    return {name for name in named if name in modules}


def private_imports(modules: Mapping[str, Module]) -> list[tuple[str, str]]:
    """What the monitor imports from the library that is not public: (importing module, imported name) pairs."""
    public = {f"tocsin{end}" for end in PUBLIC}
    documented = (documented_modules(modules) | FOR_COMMANDS) - public
    found = []
    for name, module in modules.items():
        if not _is_monitor(name):
            continue
        for base, what in {*module.at_import, *module.in_functions}:
            if not base.startswith("tocsin") or _is_monitor(base) or _is_monitor(f"{base}.{what}"):
                continue
            whole = f"{base}.{what}" if what else base
            offered = what in modules[base].offered if base in public and base in modules else base in documented
            if not offered and whole not in public | documented and what != "__version__":
                found.append((name, whole))
    return sorted(found)


def _is_monitor(name: str) -> bool:
    return any(name == monitor or name.startswith(f"{monitor}.") for monitor in MONITORS)


def clean_csv() -> str:
    """Two weeks of a sensor without any damage."""
    rows = ["time,pressure"]
    value = 0.0
    for step in range(2000):
        value = 0.9 * value + ((step * 7919) % 101 - 50) / 100
        rows.append(f"2024-01-{1 + step // 144:02d}T{step // 6 % 24:02d}:{step % 6 * 10:02d}:00,{20 + value:.3f}")
    return "\n".join(rows) + "\n"


def files_of_detect(folders: Iterable[Path]) -> list[str]:
    """The files of the package whose functions are called by `tocsin detect` on a clean CSV file."""
    roots = [str(folder) for folder in folders]
    with tempfile.TemporaryDirectory() as scratch:
        data, target = Path(scratch) / "clean.csv", Path(scratch) / "files.json"
        data.write_text(clean_csv(), encoding="utf-8")
        command = [sys.executable, "-c", _RECORDER, json.dumps(roots), str(target), "detect", str(data)]
        done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"tocsin detect failed with {done.returncode}: {done.stderr}")
        return json.loads(target.read_text())


def print_rooms(modules: Mapping[str, Module], ran: set[str]) -> None:
    """Lines and files by room, and how many of the files run."""
    lines: Counter[str] = Counter()
    files: Counter[str] = Counter()
    running: Counter[str] = Counter()
    for module in modules.values():
        lines[module.room] += module.lines
        files[module.room] += 1
        running[module.room] += str(module.path) in ran
    print(f"{'room':24}{'lines':>8}{'files':>8}{'run by detect':>15}")
    for room, count in lines.most_common():
        print(f"{room:24}{count:8,}{files[room]:8}{running[room]:15}")


def print_list(heading: str, items: Iterable[str]) -> None:
    """A heading and the items below it, if there are any."""
    listed = list(items)
    print(f"\n{heading}: {len(listed)}")
    for item in listed:
        print(f"  {item}")


def test_minutes(given: float | None) -> str:
    """The minutes that `make test` took: as given, or as the last run left them; empty if neither is known."""
    if given is None and TEST_MINUTES.exists():
        given = float(TEST_MINUTES.read_text())
    return "" if given is None else f" test_minutes={given:g}"


def main() -> None:
    """Measure, and print."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--test-minutes", type=float, help=f"how long `make test` took; default: {TEST_MINUTES.name}")
    given = options.parse_args()
    folders = source_folders()
    modules = read_modules(folders)
    ran = files_of_detect(folders)
    top, within = import_cycles(modules)
    private = private_imports(modules)
    print_rooms(modules, set(ran))
    print_list("files that `tocsin detect` runs", (str(Path(name).relative_to(ROOT)) for name in ran))
    print_list("import cycles", map(" <-> ".join, top))
    print_list("cycles closed by imports within functions (not counted)", map(" <-> ".join, within))
    print_list("private names that the monitor imports", (f"{module}: {name}" for module, name in private))
    plugins = sum(one.lines for name, one in modules.items() if name.startswith(PLUGINS))
    print(
        f"\nsrc_lines={sum(one.lines for one in modules.values())} src_files={len(modules)} detect_files={len(ran)} "
        f"cycles={len(top)} monitor_private_imports={len(private)} plugin_lines={plugins}"
        f"{test_minutes(given.test_minutes)}"
    )


if __name__ == "__main__":
    main()
