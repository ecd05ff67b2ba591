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
#: What the wheel must hold beside the code, and what it must not.
NEEDED = (
    "tocsin/py.typed",
    "tocsin/forecasting/embedded/weights.npz",
    "tocsin/service/page/index.html",
    "licenses/LICENSE",
)
UNWANTED = ("tests/", "benchmarks/", "training/", "docs/")


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    print("$", *(Path(part).name if isinstance(part, Path) else part for part in command), flush=True)
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}{done.stderr}")
    return done.stdout


def build() -> tuple[Path, Path]:
    """The sdist and the wheel."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", str(DIST))
    (sdist,), (wheel,) = DIST.glob("*.tar.gz"), DIST.glob("*.whl")
    return sdist, wheel


def check_contents(sdist: Path, wheel: Path) -> None:
    held = zipfile.ZipFile(wheel).namelist()
    for needed in NEEDED:
        if not any(name.endswith(needed) for name in held):
            sys.exit(f"{wheel.name} does not hold {needed}")
    for name in held:
        if name.startswith(UNWANTED):
            sys.exit(f"{wheel.name} holds {name}")
    if sum("licenses/" in name for name in held) < 2:
        sys.exit(f"{wheel.name} does not hold the licences of all that it contains")
    with tarfile.open(sdist) as archive:
        if not any(name.endswith("/README.md") for name in archive.getnames()):
            sys.exit(f"{sdist.name} does not hold README.md")


def main() -> None:
    sdist, wheel = build()
    check_contents(sdist, wheel)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        venv.create(place / "env", with_pip=True)
        programs = place / "env" / "bin"
        run(programs / "python", "-m", "pip", "install", "--quiet", f"{wheel}[plot,parquet]")
        for block in re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL):
            for command in re.findall(r"^\$ (.*)$", block, flags=re.MULTILINE):
                run("bash", "-c", f'PATH="{programs}:$PATH"; set -o pipefail; {command}', cwd=place)
    print(f"{sdist.name} and {wheel.name} ({wheel.stat().st_size / 1e6:.1f} MB) are ready to be published")


if __name__ == "__main__":
    main()
