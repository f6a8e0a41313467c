"""The code blocks of a documentation page, with what the comment before each says.

A comment on the line before a block, which no reader sees, may say:

    <!-- not run: why -->      it is shown only
    <!-- slow -->              'make test-all' runs it, 'make test' does not
    <!-- small: words -->      words that are added to its commands, to make them quick
    <!-- first: command -->    what has to be done before it
"""

import re
import shlex
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(
    r"^(?P<notes>(?:[ ]*<!--(?:(?!-->).)*-->[ ]*\n+)*)"
    r"(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^(?P=indent)```",
    re.MULTILINE | re.DOTALL,
)
NOTE = re.compile(r"<!--\s*(not run|slow|small|first)(?::\s*(.*?))?\s*-->")
RUN = ("python", "bash")
SHOWN = ("text", "yaml", "dockerfile")
"""Languages of blocks that are output, or files."""

NOT_RUN = {
    "pip": "installs packages",
    "uv": "installs packages",
    "apt-get": "changes the system",
    "sudo": "changes the system",
    "docker": "containers",
    "make": "is what runs the tests",
    "ssh": "another machine",
    "git": "no repository to clone from",
    ".": "changes the shell",
    "unset": "changes the shell",
    "rm": "deletes files of this machine",
}
"""Programs that are never run by a test, and why."""


@dataclass
class Block:
    """Code of one language."""

    language: str
    code: str
    line: int
    notes: dict[str, list[str]] = field(default_factory=dict)

    @property
    def reason(self) -> str | None:
        """Why it is not run."""
        return self.notes["not run"][0] if "not run" in self.notes else None

    @property
    def is_slow(self) -> bool:
        return "slow" in self.notes

    def commands(self) -> list[list[str]]:
        """Return the words of every command."""
        lines = re.sub(r"\\\n\s*", " ", self.code).splitlines()
        found = [shlex.split(line, comments=True) for line in lines]
        return [words for words in found if words]


def pages() -> list[Path]:
    """Every page with code that somebody may copy; decisions and changes tell of the past."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    found += sorted((ROOT / "docs").rglob("*.md"))
    return [page for page in found if "decisions" not in page.parts]


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page, from top to bottom."""
    text = page.read_text()
    found = []
    for match in BLOCK.finditer(text):
        notes: dict[str, list[str]] = {}
        for kind, words in NOTE.findall(match["notes"]):
            notes.setdefault(kind, []).append(words)
        code = re.sub(rf"^{match['indent']}", "", match["code"], flags=re.MULTILINE)
        line = text[: match.start("language")].count("\n") + 1
        found.append(Block(match["language"], code, line, notes))
    return found


def census() -> tuple[Counter[str], Counter[str]]:
    """Count what tests run, and what they do not run by its reason."""
    run: Counter[str] = Counter()
    not_run: Counter[str] = Counter()
    for page in pages():
        for block in blocks(page):
            if block.language not in RUN:
                continue
            when = ", slow" if block.is_slow else ""
            if block.language == "python" or block.reason is not None:
                _count(run, not_run, f"python blocks{when}", block.reason)
            else:
                for words in block.commands():
                    _count(run, not_run, f"commands{when}", NOT_RUN.get(words[0]))
    return run, not_run


def _count(run: Counter[str], not_run: Counter[str], kind: str, reason: str | None) -> None:
    if reason is None:
        run[kind] += 1
    else:
        not_run[reason] += 1


def summary() -> str:
    """Return the census in words."""
    run, not_run = census()
    lines = [f"run by tests: {', '.join(f'{n} {kind}' for kind, n in sorted(run.items()))}"]
    lines += [f"not run: {sum(not_run.values())}"]
    lines += [f"  {number:3}  {reason}" for reason, number in not_run.most_common()]
    return "\n".join(lines)


if __name__ == "__main__":
    print(summary())
