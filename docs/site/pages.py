"""The pages of the site that are not files in `docs/`: those in the root, and the generated reference."""

import re
from pathlib import Path, PurePosixPath
from typing import Any

import reference
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
#: Pages in the root of the repository, and where they are on the site.
FROM_ROOT = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "inside/architecture.md",
    "CONTRIBUTING.md": "inside/contributing.md",
    "SECURITY.md": "inside/security.md",
    "CHANGELOG.md": "inside/changelog.md",
}
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)#]+)(#[^)]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made."""
    made = {address: (ROOT / name).read_text() for name, address in FROM_ROOT.items()} | {
        f"reference/{name}.md": make() for name, make in reference.PAGES.items()
    }
    for address, content in made.items():
        files.append(File.generated(config, address, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links as they are on the site: written for the repository, they may lead out of `docs/`."""
    here = page.file.src_uri
    origin = {address: name for name, address in FROM_ROOT.items()}.get(here, f"docs/{here}")
    return LINK.sub(lambda link: _on_the_site(link, origin, here), markdown)


def _on_the_site(link: re.Match[str], origin: str, here: str) -> str:
    image, text, target, anchor = link.groups(default="")
    path = _resolved(PurePosixPath(origin).parent / target)
    if path in FROM_ROOT:
        address = FROM_ROOT[path]
    elif path.startswith("docs/"):
        address = path.removeprefix("docs/")
    else:
        return text  # a file of the repository that is not on the site
    ups = len(PurePosixPath(here).parts) - 1
    return f"{image}[{text}]({'../' * ups}{address}{anchor})"


def _resolved(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)
