"""Build what is published, install the wheel in an empty environment, and run the README's commands there."""

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
#: What each wheel must hold beside the code, and what neither may.
NEEDED = {
    "tocsin": ("tocsin/py.typed", "tocsin/forecasting/embedded/weights.npz", "uplot/uPlot.esm.js", "licenses/LICENSE"),
    "tocsin_monitor": ("tocsin_monitor/py.typed", "tocsin_monitor/page/index.html", "licenses/LICENSE"),
}
UNWANTED = ("tests/", "benchmarks/", "training/", "docs/", "tocsin_bench/")


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    print("$", *(Path(part).name if isinstance(part, Path) else part for part in command), flush=True)
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}{done.stderr}")
    return done.stdout


def build(folder: Path) -> tuple[Path, Path]:
    """The sdist and the wheel of the project in this folder."""
    place = DIST / folder.name
    run(sys.executable, "-m", "build", "--outdir", str(place), str(folder))
    (sdist,), (wheel,) = place.glob("*.tar.gz"), place.glob("*.whl")
    return sdist, wheel


def check_contents(sdist: Path, wheel: Path) -> None:
    held = zipfile.ZipFile(wheel).namelist()
    for needed in NEEDED[wheel.name.split("-")[0]]:
        if not any(name.endswith(needed) for name in held):
            sys.exit(f"{wheel.name} does not hold {needed}")
    for name in held:
        if name.startswith(UNWANTED):
            sys.exit(f"{wheel.name} holds {name}")
    with tarfile.open(sdist) as archive:
        if not any(name.endswith("/README.md") for name in archive.getnames()):
            sys.exit(f"{sdist.name} does not hold README.md")


def commands_of(programs: Path) -> set[str]:
    """The commands in the help."""
    return set(re.findall(r"^│ ([a-z-]+) ", run(programs / "tocsin", "--help"), flags=re.MULTILINE))


def main() -> None:
    shutil.rmtree(DIST, ignore_errors=True)
    built = [build(folder) for folder in (ROOT, ROOT / "monitor")]
    for sdist, wheel in built:
        check_contents(sdist, wheel)
    library, monitor = (wheel for _, wheel in built)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        venv.create(place / "env", with_pip=True)
        programs = place / "env" / "bin"
        run(programs / "python", "-m", "pip", "install", "--quiet", f"{library}[plot,parquet]")
        for block in re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL):
            for command in re.findall(r"^\$ (.*)$", block, flags=re.MULTILINE):
                run("bash", "-c", f'PATH="{programs}:$PATH"; set -o pipefail; {command}', cwd=place)
        if "serve" in commands_of(programs):
            sys.exit("`tocsin serve` must not be there without the monitor")
        run(programs / "python", "-m", "pip", "install", "--quiet", str(library), str(monitor))
        if "serve" not in commands_of(programs):
            sys.exit("`tocsin serve` must be there with the monitor")
        run(programs / "tocsin", "config", "check", cwd=place)
    sizes = ", ".join(f"{wheel.name} ({wheel.stat().st_size / 1e6:.1f} MB)" for _, wheel in built)
    print(f"ready to be published, with their sdists: {sizes}")


if __name__ == "__main__":
    main()
