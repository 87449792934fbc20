"""--resume, and RESUME=1: finds the checkpoints from which our trainer continues, and checks them before the start.

The trainer gets the folder as `train.resume_from`.  Nothing here imports MindSpore.
"""

from __future__ import annotations

import os

from hccl_tools.common import project, typed
from hccl_tools.common.language import tr
from hccl_tools.common.refusal import REFUSED, Refusal, misused, refused
from hccl_tools.common.words import one_line
from tools.config.unusable import Unusable
from tools.launch import latest_link
from tools.launch.engines.placement import Placement
from tools.launch.hosts import network
from tools.launch.programs import trainer_command
from tools.launch.request import Request
from tools.launch.resume import runs
from tools.launch.resume.resumption import Resumption
from tools.trainer import checkpoints
from tools.trainer.checkpoints import choosing, labels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.config.config_file import Config

_CONVERTED = "resumed"  # in the folder of a run: checkpoints that were made for its number of ranks


# ---- which checkpoints -----------------------------------------------------------------------------


def find(request: Request, config: Config, named: str, placed: Placement, run_dir: str) -> Resumption | None:
    """The checkpoints for the launch with the config `named`; None: it starts from the beginning.  Raises Refusal."""
    filled = config.filled
    if request.resume is None:
        return _of_variable(filled, named, placed) if os.environ.get("RESUME") == "1" else None
    if latest_link.RESUME_FROM.partition(".")[2] in filled["train"]:
        place = config.place("/" + latest_link.RESUME_FROM.replace(".", "/"))
        raise misused(
            "--resume and {resume_from} ({place}) both name what to continue from; give only one of them",
            resume_from=latest_link.RESUME_FROM,
            place=place,
        )
    run: str | None
    if request.resume == "newest":
        run, source = runs.newest(request.log_dir or "logs", named), None
    else:
        run, source = runs.named(request.resume)
    if run:
        runs.check_ended(run)
        runs.check_same_network(run, filled)
        source = source or runs.checkpoints_of(run)
    return _checked(run, source or "", filled, placed, run_dir)


def _of_variable(filled: dict[str, Any], named: str, placed: Placement) -> Resumption:
    """RESUME=1, which the user has typed: a launcher that restarts ranks plans no launch."""
    section = filled["train"]
    folders = [section[key] for key in ("ckpt_save_dir", "resume_from") if key in section]
    for folder in folders:
        if choosing.any_labelled(folder):
            return _checked(None, os.path.realpath(folder), filled, placed, None)
    where = (
        tr("{folder} has no checkpoint", folder=one_line(folders[0]))
        if folders
        else tr("a new run has no checkpoint of its own")
    )
    raise refused(
        "RESUME=1: {where}; type --resume to go on from the newest run of {named}, or unset "
        "RESUME to train from the beginning",
        where=where,
        named=one_line(named),
    )


def _checked(
    run: str | None, source: str, filled: dict[str, Any], placed: Placement, run_dir: str | None
) -> Resumption:
    """The Resumption from the folder `source`, whose checkpoints fit; run_dir: where some may be converted to."""
    model, world = filled["model"]["name"], placed.world
    try:
        label = choosing.newest_label(source)
        if label is None:
            raise refused(
                "{folder} has no checkpoint; name another run, or train from the beginning without --resume",
                folder=one_line(latest_link.shown(source)),
            )
        if label.model != model:
            raise choosing.of_another_network(source, label, model)
        if label.ranks != world:
            return _converted(run, source, label, placed, run_dir)
        found, torn = choosing.whole_on(source, _ranks_here(source, placed), world)
    except Unusable as error:
        raise Refusal(REFUSED, *error.lines) from error
    if not found:
        first = tr(": {path} is damaged or cut off", path=one_line(latest_link.shown(torn[0]))) if torn else ""
        raise refused(
            "{folder} has no checkpoint that is whole on all ranks of this host{first}; name another run, or train "
            "from the beginning without --resume",
            folder=one_line(latest_link.shown(source)),
            first=first,
        )
    remarks = _passed_over(torn) + _all_done(found[0][1], filled)
    return Resumption(run=run, source=source, folder=source, candidates=found, remarks=remarks)


def _ranks_here(source: str, placed: Placement) -> list[int]:
    """The ranks whose checkpoints can be looked at: those of this host, and others' in a shared folder."""
    others = set(network.others(placed.hosts)) if placed.hosts else set()
    away = {rank for (rank, _), host in zip(placed.ranks, placed.hosts) if host in others}
    return [
        rank for rank, _ in placed.ranks if rank not in away or os.path.isdir(checkpoints.rank_folder(source, rank))
    ]


def _converted(run: str | None, source: str, label: labels.Label, placed: Placement, run_dir: str | None) -> Resumption:
    """The same for another number of ranks.  A whole network is copied; what was cut, the user converts."""
    world = placed.world
    files = choosing.in_all_ranks(source)
    command = [trainer_command.python(), project.path("tools", "convert_ckpt.py"), source]
    several = len(placed.sizes()) > 1
    if run_dir is None or several or not label.whole:
        shown = one_line(latest_link.shown(source))
        command_there = typed.command("tools/convert_ckpt.py", shown, "NEW_FOLDER", "--ranks", str(world))
        if several:
            command_there = tr("{command}, copy NEW_FOLDER to every host", command=command_there)
        raise refused(
            "{folder} comes from a job of {ranks} ranks, but this job has {world}; type: {command}, and then "
            "--resume=NEW_FOLDER",
            folder=shown,
            ranks=label.ranks,
            world=world,
            command=command_there,
        )
    folder = os.path.join(run_dir, _CONVERTED)
    return Resumption(
        run=run,
        source=source,
        folder=folder,
        convert=[*command, folder, "--ranks", str(world)],
        candidates=[files[0]],
        remarks=(
            tr(
                "note: these checkpoints come from {ranks} ranks; they are copied for {world}",
                ranks=label.ranks,
                world=world,
            ),
        ),
    )


def _passed_over(torn: list[str]) -> tuple[str, ...]:
    return tuple(
        tr(
            "note: {path} is damaged or cut off; an earlier checkpoint is taken",
            path=one_line(latest_link.shown(path)),
        )
        for path in torn[:1]
    )


def _all_done(label: labels.Label, filled: dict[str, Any]) -> tuple[str, ...]:
    epochs = filled["scheduler"]["num_epochs"]
    if label.epoch < epochs or label.steps < label.epoch_steps:
        return ()
    return (
        tr(
            "note: all {epochs} epochs are done; to train more: -- -o scheduler.num_epochs={epoch}",
            epochs=epochs,
            epoch=label.epoch + 1,
        ),
    )


def refuse_foreign(request: Request, about: str) -> None:
    """Raises Refusal for --resume with a trainer that is not ours, whose checkpoints we do not know."""
    if request.resume is not None:
        raise misused(
            "--resume works for this project's trainer with a config, but this launch runs {about}; give the "
            "program its own arguments for resuming, or RESUME=1 if it reads that; for restarts: --restart_args",
            about=about,
        )
