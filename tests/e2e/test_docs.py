"""The documentation tells the truth: headings, links and code."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
PAGES += sorted((ROOT / "docs").rglob("*.md"))

# Some codes appear only on machines that lack something: the doctor here cannot show them all.
POSSIBLE_CODES = {
    "python", "packages", "compiled", "renderer", "splats", "cores", "memory", "shared-memory",
    "mujoco-gl", "gl-egl", "gl-osmesa", "gl-glfw", "drawing", "xvfb", "codecs",
    "coppeliasim", "rlbench", "cuda",
}  # fmt: skip


def run_python(*words, cwd=ROOT):
    return subprocess.run(
        [sys.executable, *words], cwd=cwd, capture_output=True, text=True, timeout=240
    )


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def python_blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


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


@pytest.mark.parametrize("number", range(len(python_blocks(ROOT / "README.md"))))
def test_readme_code_runs(number, tmp_path):
    done = run_python("-c", python_blocks(ROOT / "README.md")[number], cwd=tmp_path)
    assert done.returncode == 0, done.stderr


# Pages whose blocks build on each other, top to bottom.
@pytest.mark.parametrize(
    "name",
    [
        "tutorial.md",
        "how-to/cameras.md",
        "how-to/restore-a-state.md",
        "how-to/demonstrations.md",
        "how-to/other-libraries.md",
        "how-to/piper.md",
        "how-to/perturb.md",
        "how-to/record.md",
    ],
)
def test_page_runs_top_to_bottom(name, tmp_path):
    script = "\n".join(python_blocks(ROOT / "docs" / name))
    # register() looks its task up by module and name: it needs a file.
    (tmp_path / "page.py").write_text(script)
    done = run_python(str(tmp_path / "page.py"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_no_page_of_the_decisions_is_long():
    for page in (ROOT / "docs/decisions").glob("*.md"):
        assert len(page.read_text().splitlines()) < 40, page.name
