"""Write what a shell needs in order to complete maniple's commands, options and tasks."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import typing
from collections.abc import Mapping

from maniple.cli.verb_options import options_of

SHELLS = ("bash", "zsh", "fish")


def completion(shell: str, verbs: Mapping[str, tuple[str, str]]) -> str:
    """Return the script for a shell; `verbs` is the table of commands."""
    from maniple.core.errors import BadConfig
    from maniple.registry import TASKS

    if shell not in SHELLS:
        raise BadConfig(f"--print-completion takes one of {', '.join(SHELLS)}, not {shell!r}.")
    flags = {verb: _flags(module, verb) for verb, (module, _) in verbs.items()}
    if shell == "fish":
        return _fish(verbs, flags, list(TASKS))
    script = _bash(flags, list(TASKS))
    return script if shell == "bash" else f"autoload -U +X bashcompinit && bashcompinit\n{script}"


def _flags(module: str, verb: str) -> list[str]:
    """Return the options of a command, those of groups inside it too."""
    found: list[str] = ["--help", "--debug"]
    # A command that needs a package which is not there still has a name.
    with contextlib.suppress(Exception):
        options = options_of(importlib.import_module(module), verb)
        found += [f"--{name.replace('_', '-')}" for name in _names(options)]
    return sorted(set(found))


def _names(options: type) -> list[str]:
    kinds = typing.get_type_hints(options)
    names: list[str] = []
    for field in dataclasses.fields(options):
        kind = kinds[field.name]
        if dataclasses.is_dataclass(kind) and isinstance(kind, type):
            names += _names(kind)
        else:
            names.append(field.name)
    return names


def _bash(flags: Mapping[str, list[str]], tasks: list[str]) -> str:
    first = sorted({verb.partition(" ")[0] for verb in flags})
    cases = "\n".join(
        f'    "{verb}") words="{" ".join(names)}" ;;' for verb, names in flags.items()
    )
    seconds = "\n".join(
        f'    {head}) seconds="{" ".join(_seconds(head, flags))}" ;;'
        for head in first
        if _seconds(head, flags)
    )
    return f"""# Load with: source <(maniple --print-completion bash)
_maniple() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" words="" seconds="" tasks="{" ".join(tasks)}"
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{" ".join([*first, "--help", "--version"])}" -- "$word")); return
  fi
  case "${{COMP_WORDS[1]}}" in
{seconds}
  esac
  case "${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}}" in
{cases}
  esac
  if [ -z "$words" ]; then case "${{COMP_WORDS[1]}}" in
{cases}
  esac; fi
  [ "$COMP_CWORD" -gt 2 ] && seconds=""
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
    *) COMPREPLY=($(compgen -W "$seconds $tasks" -- "$word") $(compgen -f -- "$word")) ;;
  esac
}}
complete -F _maniple maniple
"""


def _seconds(head: str, verbs: Mapping[str, object]) -> list[str]:
    return sorted(verb.partition(" ")[2] for verb in verbs if verb.startswith(f"{head} "))


def _fish(
    verbs: Mapping[str, tuple[str, str]], flags: Mapping[str, list[str]], tasks: list[str]
) -> str:
    lines = [f"complete -c maniple -a {_quoted(' '.join(tasks))}"]
    first = sorted({verb.partition(" ")[0] for verb in verbs})
    for head in first:
        about = verbs[head][1] if head in verbs else f"{', '.join(_seconds(head, verbs))}"
        lines.append(f"complete -c maniple -n __fish_use_subcommand -a {head} -d {_quoted(about)}")
    for verb, names in flags.items():
        seen = " ".join(f"; and __fish_seen_subcommand_from {word}" for word in verb.split())
        head, _, second = verb.partition(" ")
        if second:
            test = f"__fish_seen_subcommand_from {head}"
            about = _quoted(verbs[verb][1])
            lines.append(f"complete -c maniple -n '{test}' -a {second} -d {about}")
        for name in names:
            lines.append(f"complete -c maniple -n '{seen.removeprefix('; and ')}' -l {name[2:]}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
