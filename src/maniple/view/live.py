"""Open the page of a task or a run, with its newest policy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from maniple.core.errors import BadConfig
from maniple.view.page import LivePage
from maniple.view.policies import CHECKPOINT
from maniple.view.runs import CheckpointWatch
from maniple.view.server import PageServer
from maniple.view.session import Session
from maniple.view.subject import Subject, load_policy, make_envs, train_config


class Live:
    """A page, and what keeps its policy up to date."""

    def __init__(self, page: LivePage, subject: Subject, policy: Any, note: str) -> None:
        self.page, self.note = page, note
        self._policy, self._subject = policy, subject
        self._watch: CheckpointWatch | None = None
        if policy is not None:
            page.use_checkpoint(policy)
        if subject.kind == "run" and train_config(subject) is not None:
            assert subject.path is not None
            newest = policy.checkpoint.path.name if policy is not None else None
            self._watch = CheckpointWatch(subject.path, self._found, newest)

    def _found(self, checkpoint: Any, weights: dict[str, Any]) -> None:
        self.page.do(lambda: self._swap(checkpoint, weights))

    def _swap(self, checkpoint: Any, weights: dict[str, Any]) -> None:
        """Go on with a newer checkpoint, in the middle of whatever is played."""
        if self._policy is not None:
            self._policy.load(checkpoint, weights)
            return
        self._policy, _ = load_policy(self._subject)
        if self._policy is not None:
            self.page.use_checkpoint(self._policy)

    def close(self) -> None:
        """Stop looking for checkpoints, and close the page."""
        if self._watch is not None:
            self._watch.close()
        self.page.close()


def open_live(
    subject: Subject,
    num_envs: int,
    settings: dict[str, Any],
    seed: int,
    open_server: Callable[[], PageServer],
    runs: Path,
    record_to: Path,
    acting: str | None = None,
) -> Live:
    """Make the environments, then serve the page; nothing is left open if one of them fails."""
    policy, note = None, ""
    if subject.kind == "run" and train_config(subject) is not None:
        policy, why = load_policy(subject)
        note = f"{why} Somebody else acts until there is one." if policy is None else ""
    envs, limit = make_envs(subject, num_envs, settings)
    try:
        session = Session(envs, subject.task, limit, seed)
        can = (*session.actors, *([CHECKPOINT] if policy is not None else []))
        if acting is not None and acting not in can:
            raise BadConfig(f"policy is {acting!r}; here it may be: {', '.join(can)}. {note}")
        server = open_server()
    except BaseException:
        envs.close()
        raise
    origin = {"task": subject.task, "control": str(envs.metadata.get("arm_mode", ""))}
    if "renderer" in envs.metadata:
        origin["renderer"] = str(envs.metadata["renderer"])
    if subject.kind == "run" and subject.path is not None:
        runs = subject.path.parent
    page = LivePage(server, session, runs, record_to, subject.path, origin)
    live = Live(page, subject, policy, note)
    if acting is not None:
        session.choose(acting)
        page.controls.show_policies()
    return live
