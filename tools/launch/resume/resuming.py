"""--resume, and RESUME=1: finds the checkpoints from which our trainer continues, and checks them before the start.

The trainer gets the folder as `train.resume_from`.  Nothing here imports MindSpore.
"""

from __future__ import annotations

import os
import shlex

from hccl_tools.common import project, typed
from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import REFUSED, Refusal, misused, refused
from hccl_tools.common.words import one_line
from hccl_tools.machine import programs
from tools.config.unusable import Unusable
from tools.launch import latest_link
from tools.launch.engines import facts
from tools.launch.engines.placement import Placement
from tools.launch.hosts import host_check, network
from tools.launch.programs import trainer_command
from tools.launch.request import Request
from tools.launch.resume import runs
from tools.trainer import checkpoints
from tools.trainer.checkpoints import choosing, labels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.config.config_file import Config

_CONVERTED = "resumed"  # in the folder of a run: checkpoints that were made for its number of ranks


# ---- which checkpoints -----------------------------------------------------------------------------
_SECONDS = 600  # that the copies of checkpoints may take
_MARK = "launch-resume-check"


class Resumption(Record):
    """The checkpoints from which a launch continues."""

    run: str | None  # the folder of the run that saved; None: only its checkpoints are known
    source: str  # the folder with rank_0, rank_1 ...
    folder: str  # the same, or one of the new run, with the checkpoints for its number of ranks
    convert: list[str] = []  # the command that makes `folder`
    candidates: list[
        tuple[str, labels.Label]
    ]  # (path, Label) of a rank, newest first; all ranks of this host have them
    remarks: tuple[str, ...] = ()

    @property
    def label(self) -> labels.Label:
        """What is resumed, if this host knows it."""
        return self.candidates[0][1]

    def where(self) -> str:
        """Where it continues, for people."""
        label = self.label
        folder = one_line(latest_link.shown(self.source))
        if label.steps < label.epoch_steps:
            text = tr(
                "after step {steps} of epoch {epoch}, from {folder}",
                steps=label.steps,
                epoch=label.epoch,
                folder=folder,
            )
        else:
            text = tr("after epoch {epoch}, from {folder}", epoch=label.epoch, folder=folder)
        return text

    def record(self) -> dict[str, Any]:
        """The same for launch.json."""
        label = self.label
        of = {} if self.run is None else {"run": self.run}
        return {**of, "folder": self.source, "epoch": label.epoch, "steps": label.steps, "ranks": label.ranks}

    def setting(self) -> str:
        """The argument for -o that passes this to the trainer."""
        return f"{latest_link.RESUME_FROM}={latest_link.yaml_word(self.folder)}"

    def make(self) -> None:
        """Makes the checkpoints for the new number of ranks.  Raises Refusal."""
        done = programs.ask(self.convert, _SECONDS) if self.convert else None
        if done and done.status:
            raise Refusal(
                REFUSED, f"--resume: {one_line(done.stderr.strip()) or tr('exit {status}', status=done.status)}"
            )


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
    remarks = tuple(
        tr(
            "note: {path} is damaged or cut off; an earlier checkpoint is taken",
            path=one_line(latest_link.shown(path)),
        )
        for path in torn[:1]
    ) + _all_done(found[0][1], filled)
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


def check_hosts(request: Request, placed: Placement, found: Resumption) -> Resumption:
    """Checks what the hosts have of it, by names and sizes alone.  Raises Refusal if one has nothing."""
    ranks = _ranks_by_host(placed, found.source)
    if request.engine != "mpirun" or request.no_check or not ranks:
        return found
    names = [os.path.basename(path)[: -len(".ckpt")] for path, _ in found.candidates]
    mpi = facts.of(facts.MpirunFacts, placed.engine).mpi
    answers = host_check.ask(
        request, mpi.version, {host: question(found.source, names, numbers) for host, numbers in ranks.items()}
    )
    lacks = {host: _lacks(answers[host].stdout) for host in ranks}
    left = [item for item, name in zip(found.candidates, names) if not any(name in lack for lack in lacks.values())]
    if left:
        return found.replace(candidates=left)
    host = next(host for host in ranks if names[-1] in lacks[host])
    raise refused(
        "{host}: {folder} has no complete {name}.ckpt of rank {rank}; copy it there, share the folder, or name "
        "another run",
        host=one_line(host),
        folder=one_line(found.source),
        name=one_line(names[-1]),
        rank=lacks[host][names[-1]],
    )


def question(folder: str, names: list[str], ranks: list[int]) -> str:
    """One shell command whose lines "MARK RANK NAME" are the checkpoints that are missing, or not as large as saved."""
    each = " ".join(map(shlex.quote, names))
    whole = '[ -f "$f.ckpt" ] && grep -Eq "\\"bytes\\": $(stat -c %s "$f.ckpt")(,|}|$)" "$f.json" 2>/dev/null'
    return (
        f"cd {shlex.quote(folder)} 2>/dev/null || cd /proc/self; "
        f"for n in {each}; do for r in {' '.join(map(str, ranks))}; do f=rank_$r/$n; "
        f'{whole} || echo {_MARK} "$r" "$n"; done; done'
    )


def _ranks_by_host(placed: Placement, source: str) -> dict[str, list[int]]:
    """{another host: its ranks whose checkpoints cannot be seen from here}."""
    others = set(network.others(placed.hosts)) if placed.hosts else set()
    found: dict[str, list[int]] = {}
    for (rank, _), host in zip(placed.ranks, placed.hosts):
        if host in others and not os.path.isdir(checkpoints.rank_folder(source, rank)):
            found.setdefault(host, []).append(rank)
    return found


def _lacks(said: str) -> dict[str, str]:
    """{name of a checkpoint: a rank that lacks it}."""
    found: dict[str, str] = {}
    for line in said.splitlines():
        if line.startswith(_MARK + " "):
            _, rank, name = line.split(" ", 2)
            found.setdefault(name, rank)
    return found
