"""Meet over Ray: a head beside the learner, actors anywhere, a token between them."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import psutil

from maniple.core.child import python_module, start_child
from maniple.core.errors import BadConfig, ManipleError
from maniple.core.loopback import is_loopback
from maniple.core.optional import require
from maniple.learn.step_queue import NAME, NAMESPACE, PROTOCOL, StepQueue
from maniple.version import __version__

ROLES = ("local", "learner", "actor", "both")


class ClusterError(ManipleError, RuntimeError):
    """The other side is not there, or is not what it should be."""


@dataclass(frozen=True)
class ClusterConfig:
    """Who this process is, and where the others are."""

    role: str = "local"
    """local (one process, no network), learner, actor, or both (a learner and one actor here)."""

    ip: str = "127.0.0.1"
    """Address of the learner's machine. Other machines reach it only if it is not the default."""

    port: int = 46379
    """Port of the head on that machine."""

    token_file: Path = Path("~/.maniple/cluster_token")
    """Secret that all sides share. The learner makes it where it is missing; copy it to the
    actors' machines."""

    queue_steps: int = 20_000
    """Environment steps that wait for the learner at most; older ones are dropped and counted."""

    push_steps: int = 30
    """Vector steps that an actor sends at once."""

    patience_s: float = 600.0
    """Seconds without a learner after which the head ends itself; seconds after which an actor
    gives up are a tenth of it."""

    def __post_init__(self) -> None:
        if self.ip == "localhost":
            object.__setattr__(self, "ip", "127.0.0.1")
        if self.role not in ROLES:
            raise BadConfig(f"role is {self.role!r}; it may be one of: {', '.join(ROLES)}.")


class Cluster:
    """A connection to the step queue, and the head if it was started here."""

    def __init__(self, config: ClusterConfig, run_dir: Path | None = None) -> None:
        self.config = config
        self._note = run_dir / "cluster.json" if run_dir else None
        is_learner = run_dir is not None
        _use_token(config.token_file.expanduser(), is_learner, config.patience_s / 10)
        if is_loopback(config.ip):
            # Ray replaces 127.0.0.1 by an address of the network unless it may not form a cluster;
            # it then listens on all of them. Read when Ray is imported, here and in the head.
            os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        self._ray: Any = require("ray")
        self._node: subprocess.Popen | None = None
        if self._note is None:
            if _own_address(config.ip) is None:
                self._join_from_elsewhere()
        elif not _answers(config.ip, config.port):
            self._start_head(self._note)
        elif _head_of(self._note) is None:
            raise ClusterError(
                f"Port {config.port} of {config.ip} is in use by another program, perhaps by "
                f"another learner. Name another one: --port {config.port + 1}, here and on the "
                "actors' side."
            )
        self._connect()
        self.queue: Any = self._find_queue(may_create=is_learner)

    def call(self, method: str, *args: Any, timeout_s: float = 30.0) -> Any:
        """Call the step queue and wait for its answer, but not for ever."""
        try:
            return self._ray.get(getattr(self.queue, method).remote(*args), timeout=timeout_s)
        except (self._ray.exceptions.RayError, ConnectionError) as error:
            raise ClusterError(
                f"The queue at {self.config.ip}:{self.config.port} did not answer {method!r} "
                f"({type(error).__name__})."
            ) from error

    def open(self, described: dict[str, Any]) -> None:
        """As a learner: say what is learned here."""
        hello = {"protocol": PROTOCOL, "version": __version__, "config": described}
        self.call("open", json.dumps(hello))

    def meet(self) -> dict[str, Any]:
        """As an actor: wait for the learner, check that we understand it, return its config."""
        deadline = monotonic() + self.config.patience_s / 10
        while not (hello := self.call("hello")):
            if monotonic() > deadline:
                raise ClusterError(f"No learner came to {self.config.ip}:{self.config.port}.")
            sleep(0.2)
        said = json.loads(hello)
        ours = {"protocol": PROTOCOL, "version": __version__}
        for name, value in ours.items():
            if said.get(name) != value:
                raise ClusterError(
                    f"The learner has {name} {said.get(name)!r}, this actor {value!r}. Install "
                    "the same maniple on both."
                )
        return said["config"]

    def beat(self) -> None:
        """Give the head a sign of life."""
        if self._note is not None:
            self._note.touch()

    def close(self) -> None:
        """Leave; as a learner, end the head and all that it started."""
        self._ray.shutdown()
        if self._node is not None:
            self._node.terminate()
            self._node.wait(20)
            self._node = None
        if self._note is not None and self._note.exists():
            _end_head(self._note)

    def _start_head(self, note: Path) -> None:
        note.parent.mkdir(parents=True, exist_ok=True)
        note.touch()
        log = (note.parent / "head.log").open("ab")
        command = python_module("maniple.learn.ray_head", self.config.ip, str(self.config.port))
        command += [str(note), str(self.config.patience_s)]
        # A session of its own: neither Ctrl-C nor our death ends it while actors need it.
        head = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        log.close()
        began = psutil.Process(head.pid).create_time()
        note.write_text(json.dumps({"pid": head.pid, "began": began}))
        deadline = monotonic() + 120
        while not _answers(self.config.ip, self.config.port):
            if head.poll() is not None or monotonic() > deadline:
                raise ClusterError(f"Ray's head did not start; see {note.parent / 'head.log'}.")
            sleep(0.2)
        if is_loopback(self.config.ip) and (seen := exposed(head.pid)):
            _end_head(note)
            raise ClusterError(
                f"Ray listens at {', '.join(seen)}, which other machines can reach, although --ip "
                f"is {self.config.ip}. It was ended. Install the pinned version of Ray."
            )

    def _join_from_elsewhere(self) -> None:
        """Make this machine a node of the learner's cluster, for as long as we are here."""
        self._node = start_child(
            [
                sys.executable, "-P", "-m", "ray.scripts.scripts", "start", "--block",
                f"--address={self.config.ip}:{self.config.port}", "--disable-usage-stats",
            ],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            signum=signal.SIGTERM,
        )  # fmt: skip

    def _connect(self) -> None:
        address = f"{self.config.ip}:{self.config.port}"
        deadline = monotonic() + max(60.0, self.config.patience_s / 10)
        while True:
            try:
                self._ray.init(
                    address=address, namespace=NAMESPACE, log_to_driver=False,
                    logging_level="ERROR", _node_ip_address=_own_address(self.config.ip),
                )  # fmt: skip
                return
            except Exception as error:  # Ray has no common class for what goes wrong here.
                self._ray.shutdown()
                if "token" in str(error).lower() or monotonic() > deadline:
                    first = (str(error).strip() or type(error).__name__).splitlines()[0]
                    raise ClusterError(
                        f"No connection to the head at {address}: {first} Start the learner "
                        "first, and give this side the same --token-file."
                    ) from error
                sleep(0.5)

    def _find_queue(self, may_create: bool) -> Any:
        if may_create:
            kind = self._ray.remote(StepQueue).options(
                name=NAME, namespace=NAMESPACE, lifetime="detached", get_if_exists=True, num_cpus=0
            )
            return kind.remote(self.config.queue_steps)
        deadline = monotonic() + self.config.patience_s / 10
        while True:
            try:
                return self._ray.get_actor(NAME, NAMESPACE)
            except ValueError:
                if monotonic() > deadline:
                    raise ClusterError(
                        "The head is there, but no learner has opened yet."
                    ) from None
                sleep(0.2)


def _use_token(path: Path, may_create: bool, patience_s: float) -> None:
    """Switch Ray's token authentication on, which is off unless asked for.

    A learner draws the token; an actor on the same machine may have been started before it.
    """
    if may_create:
        make_token(path)
    deadline = monotonic() + patience_s
    while not path.exists():
        if monotonic() > deadline:
            raise BadConfig(
                f"There is no token at {path}. Start the learner first, or copy its token from "
                "its machine, or name it with --token-file."
            )
        sleep(0.2)
    os.environ["RAY_AUTH_MODE"] = "token"
    os.environ["RAY_AUTH_TOKEN_PATH"] = str(path)
    os.environ.pop("RAY_AUTH_TOKEN", None)
    # Workers of Ray inherit this; it keeps their start quick and quiet.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")


def make_token(path: Path) -> None:
    """Draw a secret that only this user can read, unless there is one already."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    os.write(handle, secrets.token_hex(32).encode())
    os.close(handle)


def exposed(pid: int) -> list[str]:
    """Return where a process, or one that it started, listens for other machines."""
    found = []
    here = psutil.Process(pid)
    for process in (here, *here.children(recursive=True)):
        try:
            sockets = process.net_connections(kind="inet")
        except psutil.Error:
            continue
        for one in sockets:
            ip = str(one.laddr[0]).removeprefix("::ffff:") if one.laddr else ""
            if one.status == psutil.CONN_LISTEN and not is_loopback(ip):
                found.append(f"{ip}:{one.laddr[1]} ({process.name()})")
    return found


def _answers(ip: str, port: int) -> bool:
    try:
        socket.create_connection((ip, port), timeout=1).close()
    except OSError:
        return False
    return True


def _own_address(ip: str) -> str | None:
    """On the learner's own machine Ray must be told which of its addresses is meant."""
    own = {a.address for addresses in psutil.net_if_addrs().values() for a in addresses}
    return ip if ip in own else None


def _head_of(note: Path) -> psutil.Process | None:
    """Return the head that a learner started in this run folder, if it still runs."""
    try:
        stored = json.loads(note.read_text())
        head = psutil.Process(stored["pid"])
        # Another process may have got the same number since.
        return head if abs(head.create_time() - stored["began"]) <= 0.01 else None
    except (OSError, psutil.NoSuchProcess, ValueError, KeyError, TypeError):
        return None


def _end_head(note: Path) -> None:
    try:
        if (head := _head_of(note)) is not None:
            head.terminate()
            head.wait(20)
    except psutil.NoSuchProcess:
        pass
    finally:
        note.unlink(missing_ok=True)
