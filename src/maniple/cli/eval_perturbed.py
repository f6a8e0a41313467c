"""The part of maniple eval that judges policies under perturbations, beside clean episodes."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import numpy as np

from maniple.cli.conditions import CLEAN, Perturb, conditions
from maniple.cli.out import make_folder, writing
from maniple.core.errors import BadConfig

if TYPE_CHECKING:
    from maniple.cli.eval import Options
    from maniple.report.perturbed_page import Judged

SHEET_SIZE = (112, 150)
LATER = 25
"""Steps after which the second picture of a sheet is taken."""


def evaluate_perturbed(options: Options) -> dict[str, Any]:
    """Play every condition, compare it with the clean one, tell."""
    from maniple.learn.player import Asked, find_player
    from maniple.report.perturbed_page import write_page

    if options.planner is not None:
        raise BadConfig("--planner has no meaning with --perturb, --policy, --page or --sheet.")
    for flag, path in (("--page", options.page), ("--sheet", options.sheet)):
        if path is not None and path.is_dir():
            raise BadConfig(f"{path} is a folder; give a file.")
        if path is not None:
            make_folder(path.parent, flag)
    asked = conditions(options.perturb)
    subjects = (str(options.checkpoint), *options.also)
    # All of them first: a mistake in the last is reported before the first is played.
    asked_of = Asked(options.states, options.prompt, _port_settings(options))
    players = [find_player(what, options.policy, not options.latest, asked_of) for what in subjects]
    judged = []
    for player in players:
        judged.append(_judge(player, asked, options))
        if not options.json:
            _show(judged[-1])
    files = [file for file in (options.sheet, options.page) if file is not None]
    with writing(" and ".join(map(str, files))):
        if options.sheet is not None:
            from maniple.data.video import save_png
            from maniple.report.contact_sheet import stacked

            save_png(options.sheet, stacked([one.sheet for one in judged if one.sheet is not None]))
        if options.page is not None:
            write_page(judged, options.page)
    for file in files if not options.json else ():
        print(f"look at  {file}")
    answers = [{"task": o.task, "policy": o.policy, "results": o.rows()} for o in judged]
    first = {**answers[0], **judged[0].rows()[0]}
    names = ("task", "policy", "success_rate", "success_ci95", "episodes", "return_mean")
    return {
        **{name: first[name] for name in names},
        "judged": answers, "files": [str(file) for file in files],
    }  # fmt: skip


def _judge(player: Any, asked: dict[str, Perturb], options: Options) -> Judged:
    from maniple.cli.progress import bar, episodes_done
    from maniple.report.perturbed_page import Judged
    from maniple.run.evaluation import FIRST_SEED, evaluate

    # The episodes of 'maniple eval' and 'maniple report'.
    first_seed = 2 * FIRST_SEED + options.seed * 1_000_000
    drawn = {} if options.renderer is None else {"renderer": options.renderer}
    results, cards = {}, {}
    for name, perturb in asked.items():
        more = {**drawn, **({"perturb": perturb} if perturb else {})}
        with ExitStack() as stack:
            envs = stack.enter_context(
                closing(player.envs(min(options.num_envs, options.episodes), **more))
            )
            _check_end(envs, player.task)
            actor = _acting(stack, player, envs)
            with bar(f"{player.task}, {name}", options.episodes, not options.json) as tick:
                results[name] = evaluate(
                    envs, actor.act, options.episodes, first_seed, watch=episodes_done(tick),
                    begin=actor.reset,
                )  # fmt: skip
        if options.sheet is not None or options.page is not None:
            label = f"{player.task}, {name}" if name == CLEAN else name
            cards[label] = _shots(player, more, first_seed)
    sheet = None
    if cards:
        from maniple.report.contact_sheet import contact_sheet

        sheet = contact_sheet(cards)
    return Judged(player.task, player.name, results, sheet)


def _shots(player: Any, more: dict[str, Any], seed: int) -> list[Any]:
    """Return pictures of an episode at its beginning and a little later."""
    from maniple.registry import find

    cameras = player.settings.get("cameras")
    if not cameras:
        camera = find(player.task).cameras[0]
        more = {**more, "cameras": (camera,), "image_size": SHEET_SIZE, "quality": "fine"}
    with ExitStack() as stack:
        envs = stack.enter_context(closing(player.envs(1, **more)))
        name = next(n for n, spec in envs.layout.items() if spec.image == "rgb")
        actor = _acting(stack, player, envs)
        obs, _ = envs.reset(seed=seed)
        actor.reset(np.ones(1, np.bool_))
        shots = [envs.named(obs)[name][0].copy()]
        for _ in range(LATER):
            obs, _, terminated, truncated, _ = envs.step(actor.act(obs))
            shots[1:] = [envs.named(obs)[name][0].copy()]
            if terminated[0] or truncated[0]:
                break
        return shots


def _acting(stack: ExitStack, player: Any, envs: Any) -> Any:
    """Make whoever acts, and have them hang up at the end if they are connected."""
    actor = player.actor(envs)
    stack.callback(getattr(actor, "close", lambda: None))
    return actor


def _port_settings(options: Options) -> dict[str, Any]:
    """Settings of environments for a policy server."""
    found: dict[str, Any] = {"control": options.control} if options.control else {}
    if options.cameras:
        found |= {"cameras": options.cameras, "image_size": options.image_size}
    return found


def _check_end(envs: Any, task: str) -> None:
    if envs.get_attr("_max_episode_steps")[0] is None:
        raise BadConfig(f"Episodes of {task} never end: there is nothing to judge.")


def _show(judged: Judged) -> None:
    from maniple.cli.table import lines
    from maniple.report.perturbed_page import HEAD, table_row

    print(f"{judged.task}, {judged.policy}, {judged.results[CLEAN].episodes} episodes")
    rows = zip(judged.rows(), judged.results.values(), strict=True)
    print("\n".join(lines(HEAD, [table_row(row, result) for row, result in rows])))
