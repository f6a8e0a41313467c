"""The documentation tells the truth: headings, links and code."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import doc_blocks
import pytest

from maniple.cli.completion import _flags
from maniple.cli.main import ALIASES, VERBS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "README.zh.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
PAGES += sorted((ROOT / "docs").rglob("*.md"))

# Some codes appear only on machines that lack something: the doctor here cannot show them all.
POSSIBLE_CODES = {
    "python", "packages", "compiled", "renderer", "splats", "cores", "memory", "shared-memory",
    "mujoco-gl", "gl-egl", "gl-osmesa", "gl-glfw", "drawing", "xvfb", "codecs",
    "coppeliasim", "rlbench", "cuda",
}  # fmt: skip

# Options of the original projects, which are rewritten before they are read.
OLD_SPELLINGS = {"--actor", "--learner", "--checkpoint-path"}


def run_python(*words, cwd=ROOT):
    return subprocess.run(
        [sys.executable, *words], cwd=cwd, capture_output=True, text=True, timeout=240
    )


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(page):
    """Headings as links name them."""
    headings = re.findall(r"^#+ (.+)$", without_code(page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h).strip().lower().replace(" ", "-") for h in headings}


def test_every_doctor_code_has_a_heading():
    done = run_python("-m", "maniple", "doctor", "--json")
    checks = json.loads(done.stdout.strip().splitlines()[-1])["checks"]
    codes = {check["code"] for check in checks} | POSSIBLE_CODES
    text = (ROOT / "docs/troubleshooting.md").read_text()
    headings = set(re.findall(r"^## (.+)$", text, re.MULTILINE))
    assert not codes - headings, "codes without a heading"
    assert not headings - codes, "headings without a code"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text()))
    for link in links:
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} leads nowhere"
        assert ROOT in target.parents, f"{link} leaves the repository"
        assert not anchor or anchor in anchors(target), f"{link} names no heading"


def test_every_block_is_run_or_says_why_not(capsys):
    """Nothing is copied from a page that no test has typed, unless the page says so."""
    for page in doc_blocks.pages():
        where = page.relative_to(ROOT)
        for block in doc_blocks.blocks(page):
            known = (*doc_blocks.RUN, *doc_blocks.SHOWN)
            assert block.language in known, f"{where}:{block.line}: name one of {known}"
            assert block.reason != "", f"{where}:{block.line}: say why it is not run"
        loose = re.findall(
            r"\n\n    [^\s*|-].*", re.sub(r"(?ms)^ *```.*?^ *```", "", page.read_text())
        )
        loose = [line for line in loose if not re.match(r"\s*(options|\d+\.)", line)]
        assert not loose, f"{where}: put code into a fence with its language: {loose[0].strip()}"
    run, not_run = doc_blocks.census()
    with capsys.disabled():
        print(f"\n{doc_blocks.summary()}")
    assert run["commands"] > 50 and run["python blocks"] > 30
    assert all(len(reason) > 5 for reason in not_run)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_in_sentences_exist(page):
    if page.name == "CHANGELOG.md":
        return  # It tells of the past.
    for code in re.findall(r"`maniple ([a-z][^`]*)`", page.read_text()):
        first, *rest = code.split()
        named = (" ".join([first, *rest[:1]]), first)
        verb = next((v for v in named if ALIASES.get(v, v) in VERBS), None)
        is_family = any(known.startswith(f"{first} ") for known in VERBS)
        assert verb or is_family, f"there is no command 'maniple {code}'"
        options = {o.replace("_", "-") for o in re.findall(r"--[a-z][\w-]*(?![\w.-])", code)}
        if verb is not None:
            verb = ALIASES.get(verb, verb)
            known = {*_flags(VERBS[verb][0], verb), *OLD_SPELLINGS}
            unknown = {
                o for o in options if o not in known and o.replace("--no-", "--") not in known
            }
            assert not unknown, f"'maniple {verb}' has no {unknown}"


def test_the_chinese_readme_says_the_same():
    """The same code, links and figures, though not the same words."""
    english, chinese = ROOT / "README.md", ROOT / "README.zh.md"

    def code(page):
        found = [block.code for block in doc_blocks.blocks(page)]
        return [re.sub(r"\s*#.*", "", text).split() for text in found]

    def links(page):
        found = re.findall(r"\]\(([^)\s#]+)", page.read_text())
        return sorted(link for link in found if not link.startswith("README"))

    def figures(page):
        text = doc_blocks.BLOCK.sub("", page.read_text())
        return sorted(re.findall(r"\d[\d,.]*\d|\d", text.partition("\n## ")[2]))

    assert code(english) == code(chinese)
    assert links(english) == links(chinese)
    assert "README.zh.md" in english.read_text() and "README.md" in chinese.read_text()
    english_has, chinese_has = Counter(figures(english)), Counter(figures(chinese))
    assert set(english_has) <= set(chinese_has), set(english_has) - set(chinese_has)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The documentation as a site, built without a warning."""
    pytest.importorskip("mkdocs", reason="pip install -c constraints.txt -e '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT, capture_output=True, text=True, timeout=300,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def test_links_of_the_site_lead_somewhere(site):
    """Files and headings are there, and nothing is fetched from elsewhere to show a page."""
    pages = {page: page.read_text() for page in site.rglob("*.html") if page.name != "404.html"}
    ids = {page: set(re.findall(r'\sid="([^"]+)"', text)) for page, text in pages.items()}
    assert len(pages) > 60
    for page, text in pages.items():
        fetched = re.findall(
            r'(?:<script[^>]*\ssrc|<link[^>]*\shref|<img[^>]*\ssrc)="([^"]+)"', text
        )
        away = [address for address in fetched if re.match(r"(https?:)?//", address)]
        assert not away, f"{page.name} fetches {away}"
        for link in {*fetched, *re.findall(r'<a[^>]*\shref="([^"]+)"', text)}:
            if re.match(r"[a-z]+:|//", link):
                continue
            path, _, anchor = unquote(link).partition("#")
            target = (page.parent / path).resolve() if path else page
            target = target / "index.html" if target.is_dir() else target
            assert target.exists(), f"{page.relative_to(site)}: {link} leads nowhere"
            is_known = not anchor or target not in ids or anchor in ids[target]
            assert is_known, f"{page.relative_to(site)}: {link} names no heading"


def test_every_question_is_in_the_list():
    """Under the title of its page."""
    listed = (ROOT / "docs/how-to/index.md").read_text()
    for page in (ROOT / "docs/how-to").glob("*.md"):
        title = page.read_text().splitlines()[0].removeprefix("# ")
        assert page.name == "index.md" or f"- [{title}]({page.name})" in listed, page.name


def test_no_page_of_the_decisions_is_long():
    for page in (ROOT / "docs/decisions").glob("*.md"):
        assert len(page.read_text().splitlines()) < 40, page.name
