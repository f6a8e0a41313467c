"""Let mkdocs show the pages outside of docs/, with every source file that a page links to."""

import re
from pathlib import Path
from posixpath import normpath, relpath

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "README.zh.md": "index.zh.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
}
"""Pages outside of docs/, and their places on the site."""
LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?\)")
CODE = re.compile(r"(^ *```.*?^ *```|`[^`\n]*`)", re.MULTILINE | re.DOTALL)


def on_config(config):
    """List the decisions, oldest first."""
    decisions = sorted(p.name for p in (ROOT / "docs/decisions").glob("*.md"))
    config.nav[-1] = {"Decisions": [f"decisions/{name}" for name in decisions]}
    return config


def on_files(files: Files, config) -> Files:
    """Add the pages from outside, and a page for each file that any page links to."""
    for name, place in PAGES.items():
        text = _moved((ROOT / name).read_text(), name, place)
        files.append(File.generated(config, place, content=text))
    linked = set()
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        home = page.relative_to(ROOT).as_posix()
        links = LINK.findall(CODE.sub("", page.read_text()))
        linked |= {found for _, link, _ in links if _is_source(found := _target(link, home))}
    for name in sorted(linked):
        files.append(File.generated(config, _source_page(name), content=_source(name)))
    return files


def on_page_markdown(markdown: str, page, **_) -> str:
    """Lead links out of docs/ to the pages that were made for them."""
    place = page.file.src_uri
    if page.file.generated_by is not None:
        return markdown
    return _moved(markdown, f"docs/{place}", place)


def _moved(text: str, home: str, place: str) -> str:
    """Rewrite the links of a page that is at `home` in the repository and `place` on the site."""

    def lead(match: re.Match) -> str:
        there = _on_site(_target(match[2], home))
        return f"{match[1]}{relpath(there, Path(place).parent.as_posix())}{match[3] or ''})"

    parts = CODE.split(text)
    parts[::2] = [LINK.sub(lead, part) for part in parts[::2]]
    return "".join(parts)


def _target(link: str, home: str) -> str:
    """Return where a link leads to, from the repository's root."""
    return normpath(f"{Path(home).parent.as_posix()}/{link}")


def _on_site(name: str) -> str:
    if name in PAGES:
        return PAGES[name]
    if name.startswith("docs/"):
        return name.removeprefix("docs/")
    return _source_page(name)


def _is_source(name: str) -> bool:
    return name not in PAGES and not name.startswith("docs/") and (ROOT / name).exists()


def _source_page(name: str) -> str:
    return f"source/{name}.md"


def _source(name: str) -> str:
    """Return a page that shows a file, or lists a folder."""
    path = ROOT / name
    head = f"---\nsearch:\n  exclude: true\n---\n# {name}\n\n"
    if path.is_dir():
        return head + "".join(f"- `{child.name}`\n" for child in sorted(path.iterdir()))
    language = {".py": "python", ".sh": "bash", ".c": "c"}.get(path.suffix, "text")
    return f"{head}````{language}\n{path.read_text()}\n````\n"
