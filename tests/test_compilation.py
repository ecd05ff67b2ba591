"""Compiled loops are cached on disk: one must be compiled again when any file changes that it is made of."""

import ast
import importlib.util
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tocsin
from tocsin import compilation
from tocsin.compilation import NotCompiledError, _fingerprint, compiled, compiling_nothing, telling_compilations

PACKAGE = Path(tocsin.__file__).parent
#: How loops are compiled is no part of what they compute.
COMPILATION = PACKAGE / "compilation.py"


@dataclass
class Module:
    """What the names at the top of a file stand for."""

    file: Path
    #: Expressions, functions and classes that a name is made of.
    made: dict[str, list[ast.AST]] = field(default_factory=dict)
    #: The file that a name is imported from, and its name there; None for the file itself.
    imported: dict[str, tuple[Path, str | None]] = field(default_factory=dict)


def file_of(module: str) -> Path | None:
    """The file of a module of the package."""
    path = PACKAGE.parent.joinpath(*module.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


@cache
def statements_of(file: Path) -> list[ast.stmt]:
    return ast.parse(file.read_text(encoding="utf-8")).body


@cache
def read(file: Path) -> Module:
    module = Module(file)
    package = ".".join(file.relative_to(PACKAGE.parent).parts[:-1])
    for statement in statements_of(file):
        match statement:
            case ast.ImportFrom(source, names, level):
                above = package.split(".")[: len(package.split(".")) - (level or 1) + 1]
                full = ".".join([*above, source] if source else above) if level else str(source)
                for name in names:
                    inside, whole = file_of(full), file_of(f"{full}.{name.name}")
                    if found := whole or inside:
                        module.imported[name.asname or name.name] = found, None if whole else name.name
            case ast.FunctionDef(name) | ast.ClassDef(name):
                module.made[name] = [statement]
            case ast.Assign(targets, value):
                for target in (node for one in targets for node in ast.walk(one) if isinstance(node, ast.Name)):
                    module.made.setdefault(target.id, []).append(value)
            case ast.AnnAssign(ast.Name(name), _, ast.AST() as value):
                module.made.setdefault(name, []).append(value)
    return module


def parts(node: ast.AST) -> list[ast.AST]:
    """What code is made of, without the decorators, which compile it."""
    if isinstance(node, ast.FunctionDef):
        every = [node.args, *node.body, *([node.returns] if node.returns else [])]
    else:
        every = [node]
    return [part for one in every for part in ast.walk(one)]


def is_kind_of_array(node: ast.AST) -> bool:
    """Whether it is a name for a type, which says nothing to the compiler."""
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "NDArray"


def follow(file: Path, name: str, seen: set[tuple[Path, str]]) -> None:
    """Every name of the package that this one is made of, and the files that they are in."""
    if (file, name) in seen or file == COMPILATION:
        return
    module = read(file)
    if name in module.imported:
        source, inside = module.imported[name]
        if inside is not None:
            follow(source, inside, seen)
    elif name in module.made and not any(map(is_kind_of_array, module.made[name])):
        seen.add((file, name))
        for part in (part for node in module.made[name] for part in parts(node)):
            match part:
                case ast.Name(used):
                    follow(file, used, seen)
                case ast.Attribute(ast.Name(used), attribute) if module.imported.get(used, (None, ""))[1] is None:
                    follow(module.imported[used][0], attribute, seen)


def calls_of_compiled(file: Path) -> list[tuple[str, ast.Call]]:
    """The functions of a file that are compiled for python, each with the call that says how."""
    module = read(file)

    def compiling(decorator: ast.AST) -> ast.Call | None:
        match decorator:
            case ast.Call(ast.Name("compiled")):
                return decorator
            case ast.Name(name):
                return next((call for value in values_of(name) if (call := compiling(value))), None)
        return None

    def values_of(name: str) -> list[ast.AST]:
        found: list[ast.AST] = []
        for statement in statements_of(file):
            match statement:
                case ast.Assign([ast.Name(target)], value) if target == name:
                    found.append(value)
                case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)):
                    for one, value in zip(targets, values, strict=True):
                        if isinstance(one, ast.Name) and one.id == name:
                            found.append(value)
        return found

    return [
        (name, call)
        for name, nodes in module.made.items()
        for node in nodes
        if isinstance(node, ast.FunctionDef)
        for decorator in node.decorator_list
        if (call := compiling(decorator))
    ]


def watched(file: Path, call: ast.Call) -> set[Path]:
    """The files with which a loop is compiled again."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    names = ast.literal_eval(given["with_files"]) if "with_files" in given else ()
    paths = [PACKAGE / name for name in names]
    if "with_folder" in given and ast.literal_eval(given["with_folder"]):
        paths.append(file.parent)
    assert all(path.exists() for path in paths), paths
    return {file, *(one for path in paths for one in (path.glob("*.py") if path.is_dir() else [path]))}


LOOPS = {
    f"{file.relative_to(PACKAGE)}:{name}": (file, name, call)
    for file in sorted(PACKAGE.rglob("*.py"))
    if file != COMPILATION and "compiled(" in file.read_text(encoding="utf-8")
    for name, call in calls_of_compiled(file)
}


@pytest.mark.slow
def test_loops_are_found() -> None:
    """Those of every file that imports the decorator."""
    using = {file for file in PACKAGE.rglob("*.py") if "compiled" in read(file).imported}
    assert using
    assert {file for file, _, _ in LOOPS.values()} == using


@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_is_compiled_again_with_every_file_that_it_is_made_of(loop: str) -> None:
    file, name, call = LOOPS[loop]
    seen: set[tuple[Path, str]] = set()
    follow(file, name, seen)
    assert (file, name) in seen
    missing = {str(one.relative_to(PACKAGE)): used for one, used in seen if one not in watched(file, call)}
    assert not missing, f"add to with_files of {loop}: {missing}"


def test_code_is_cached_under_a_name_that_depends_on_the_files(tmp_path: Path) -> None:
    """Numba itself looks only at the file of the function."""
    loop, other = tmp_path / "loop.py", tmp_path / "other.py"
    loop.write_text("def double(x):\n    return 2 * x\n")

    def name(**files: object) -> str:
        made: dict[str, object] = {}
        exec(compile(loop.read_text(), loop, "exec"), made)
        return str(compiled(**files)(made["double"]).__qualname__)  # type: ignore[arg-type]

    assert name() == "double"
    other.write_text("SIZE = 1")
    before = name(with_folder=True)
    _fingerprint.cache_clear()
    other.write_text("SIZE = 2")
    assert name(with_folder=True) != before
    assert name(with_files=("constants.py",)) not in {"double", name(with_files=("arrays.py",))}


LOOP = """
from tocsin.compilation import compiled

@compiled()
def twice(number):
    return 2 * number
"""


def test_what_is_compiled_is_told_and_can_be_refused_unless_it_is_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def loop() -> Any:
        """As another process would load it."""
        spec = importlib.util.spec_from_file_location("tocsin.loop_of_a_test", tmp_path / "loop_of_a_test.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    (tmp_path / "loop_of_a_test.py").write_text(LOOP)
    with compiling_nothing(), pytest.raises(NotCompiledError, match="twice"):
        loop().twice(1)
    told: list[str] = []
    with telling_compilations(told.append):
        assert loop().twice(1) == 2
    assert told == ["twice"]
    with compiling_nothing():
        assert loop().twice(1) == 2
        with pytest.raises(NotCompiledError):
            loop().twice(1.0)
        # What no other process can leave on disk must be compiled here.
        monkeypatch.setattr(compilation, "_not_kept", ["twice"])
        assert loop().twice(1.0) == 2.0
