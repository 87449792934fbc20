"""What every rank runs: the trainer with a config, or a program; and the notes about it for the user."""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import refused
from hccl_tools.common.words import one_line
from tools.launch import checks, latest_link
from tools.launch.engines import placement
from tools.launch.programs import trainer_command
from tools.launch.request import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tools.config.config_file import Config
    from tools.launch.devices.binding import Binding
    from tools.launch.programs.import_once import Imports
    from tools.launch.resume.resuming import Resumption

_NO_SINK = "system.jit_level=O0"  # runs operators one by one


class Job(Record):
    """What every rank runs, whatever starts the ranks."""

    words: list[str]  # the command
    restart: list[str]  # the command from the second attempt on; empty: the same
    about: str  # what was decided, for --dry_run
    source: str | None  # the file of the program, or of a trainer that is not this project's
    alone: bool  # the one rank joins no job
    is_own: bool  # this project's trainer
    needs_mindspore: bool
    checkpoints: dict[str, Any] | None = None  # where our trainer saves, and of which network
    resumed: Resumption | None = None
    remarks: Sequence[str] = ()  # what to know of its config


def find(request: Request, placed: placement.Placement, run_dir: str) -> Job:
    """What the ranks run.  Raises Refusal."""
    return of_program(request, placed, run_dir) if checks.is_program(request) else of_trainer(request, placed, run_dir)


def none() -> Job:
    """The job of a host that has MindSpore's scheduler and no ranks."""
    return Job(
        words=[],
        restart=[],
        about=tr("this host runs no ranks, only MindSpore's scheduler"),
        source=None,
        alone=False,
        is_own=False,
        needs_mindspore=True,
    )


def of_trainer(request: Request, placed: placement.Placement, run_dir: str) -> Job:
    """A trainer with a config.  Raises Refusal."""
    from tools.launch.programs import config_checks  # not at the top: programs need no YAML

    named = str(trainer_command.config_path(request))
    path = trainer_command.trainer(request)
    own = trainer_command.is_own(path)
    arguments = trainer_command.arguments(request)
    about = tr("the trainer {path} with the config {config}", path=one_line(path), config=one_line(named))
    config = config_checks.config(request, path=named, is_own=own, arguments=arguments)
    saves, resumed = None, None
    notes: list[str] = []
    if own and config:
        config_checks.training(request, config, placed.world)
        arguments = latest_link.without_it(request, config, arguments)
        if resumed := _resumed(request, config, named, placed, run_dir):
            arguments = trainer_command.with_setting(arguments, resumed.setting())
        folder = config.filled["train"].get("ckpt_save_dir") or os.path.join(run_dir, "ckpt")
        saves = {"folder": os.path.abspath(folder), "model": config.filled["model"]}
        arguments = without_sink(config, arguments) if request.no_sink else arguments
    elif not own:
        from tools.launch.programs import foreign_config

        _refuse_to_resume(request, about)
        notes = foreign_config.notes(named)
    restart = []
    if words := trainer_command.restart_words(request):
        arguments_then = trainer_command.with_words(arguments, words)
        config_then = config_checks.config(request, path=named, is_own=own, arguments=arguments_then)
        restart = trainer_command.command(path, request, config_then, named, arguments_then)
    return Job(
        words=trainer_command.command(path, request, config, named, arguments),
        restart=restart,
        about=about,
        source=None if own else path,
        alone=config_checks.runs_alone(config, placed.world),
        is_own=own,
        needs_mindspore=own,
        checkpoints=saves,
        resumed=resumed,
        remarks=notes,
    )


def without_sink(config: Config, words: list[str]) -> list[str]:
    """The arguments for our trainer, with the jit_level for --no_sink; PyNative mode compiles nothing."""
    return words if config.filled["system"]["mode"] != 0 else trainer_command.with_setting(words, _NO_SINK)


def of_program(request: Request, placed: placement.Placement, run_dir: str) -> Job:
    """A program with its own words.  Raises Refusal."""
    from tools.launch.programs import launchers, program

    if not request.no_check:
        launchers.check(request, placed.world)
    found = program.find(request, run_dir)
    if request.ranks_file and request.n != len(placed.ranks):  # a server of a rank table
        raise refused(
            "{script} starts {number} of the {ranks} ranks that this host has in the rank table; correct its range or"
            " the table",
            script=one_line(request.trainer_arguments[0]),
            number=request.n,
            ranks=len(placed.ranks),
        )
    starts = not request.ranks_file and found.source is None and not request.no_check
    if request.program and starts and launchers.script(request.trainer_arguments) is not None:
        from tools.launch.programs import own_loop

        own_loop.check(request.trainer_arguments)
    own = found.source is not None and trainer_command.is_own(found.source)
    command, resumed = found.words, None
    named = trainer_command.named_config(command) if own else None
    notes = []
    if named is not None:
        from tools.launch.programs import config_checks

        if setting := config_checks.target_of_program(request, named, command):
            command = trainer_command.with_setting(command, setting)
            notes = [tr("note: the config has another device_target; {word} is added", word=f"-o {setting}")]
    if named is None:
        _refuse_to_resume(request, found.about)
    elif _wants_to_resume(request):
        config = config_checks.config(request, path=named, is_own=True, arguments=command)
        resumed = _resumed(request, config, named, placed, run_dir) if config else None
        command = trainer_command.with_setting(command, resumed.setting()) if resumed else command
    words = trainer_command.restart_words(request)
    return Job(
        words=command,
        restart=[*command, *words] if words else [],
        about=found.about,
        source=found.source,
        alone=request.alone,
        is_own=own,
        needs_mindspore=found.imports_mindspore(),
        resumed=resumed,
        remarks=notes,
    )


def _wants_to_resume(request: Request) -> bool:
    return request.resume is not None or os.environ.get("RESUME") == "1"


def _resumed(
    request: Request, config: Config, named: str, placed: placement.Placement, run_dir: str
) -> Resumption | None:
    """What a launch of our trainer goes on from, if the user wants that.  Raises Refusal."""
    if not _wants_to_resume(request):
        return None
    from tools.launch.resume import resuming

    return resuming.find(request, config, named, placed, run_dir)


def _refuse_to_resume(request: Request, about: str) -> None:
    """Raises Refusal for --resume with another trainer than ours."""
    if request.resume is not None:
        from tools.launch.resume import resuming

        resuming.refuse_foreign(request, about)


def imports(request: Request, job: Job, binding: Binding | None) -> tuple[Imports | None, Sequence[str]]:
    """(what all ranks import once, what to know of that).  Raises Refusal."""
    if request.import_once is None:
        return None, ()
    from tools.launch.programs import import_once

    return import_once.choose(request, job, binding)


def remarks(request: Request, ranks: int, job: Job, rank_files: list[str] | None) -> list[str]:
    """Notes about the job before it starts."""
    return [
        *job.remarks,
        *_launcher_remarks(request, ranks),
        *_device_num_remarks(request, ranks, job),
        *_restart_remarks(request, job),
        *no_sink_remarks(request, job),
        *_word_remarks(request, ranks),
        *_folder_remarks(request, rank_files),
        *_resume_remarks(request, job),
    ]


def _launcher_remarks(request: Request, ranks: int) -> list[str]:
    """What to know where the program starts ranks itself."""
    if not request.program:
        return []
    from tools.launch.programs import launchers

    if ranks == 1:
        return launchers.remarks(request)
    if launchers.script(request.trainer_arguments) is None:
        return []
    from tools.launch.programs import own_loop

    return own_loop.launcher_remarks(request.trainer_arguments, ranks)


def _resume_remarks(request: Request, job: Job) -> list[str]:
    """What the job goes on from, and words that name something by a link which moves."""
    found = [tr("continues {where}", where=job.resumed.where()), *job.resumed.remarks] if job.resumed else []
    return [*found, *latest_link.remarks(request)]


def _word_remarks(request: Request, ranks: int) -> list[str]:
    """What to know of words that differ from rank to rank, or should, or are in the wrong place."""
    words = request.trainer_arguments
    if not (request.per_rank_words or any("-" in word or "$" in word or "{" in word for word in words)):
        return []
    from tools.launch.programs import word_hints

    return word_hints.remarks(request, ranks)


def _folder_remarks(request: Request, rank_files: list[str] | None) -> list[str]:
    """What to know of words that name something which ranks do not find in their folders."""
    if rank_files is None:
        return []
    from tools.launch import rank_folders

    return rank_folders.remarks(request, rank_files)


def _device_num_remarks(request: Request, ranks: int, job: Job) -> list[str]:
    """What to know where DEVICE_NUM is another number than that of the ranks."""
    if request.device_num in (None, ranks):
        return []
    from tools.launch.programs import program_calls

    return program_calls.device_num_remarks(request, ranks, job.words)


def _restart_remarks(request: Request, job: Job) -> list[str]:
    """What to know before restarts of a trainer that is not ours."""
    if job.is_own or job.restart or not request.max_restarts:
        return []
    return [
        tr("note: a restart sets RESUME=1, which the trainer must handle; --restart_args adds arguments to its command")
    ]


def no_sink_remarks(request: Request, job: Job) -> list[str]:
    """What --no_sink does, since MindSpore 2.10 no longer reads GRAPH_OP_RUN of the tutorials; HCCL reads the other."""
    if not request.no_sink:
        return []
    names = "GRAPH_OP_RUN"
    if not job.is_own:
        setting = 'set_context(jit_config={"jit_level": "O0"})'
        return [
            tr(
                "note: --no_sink sets {names}, which MindSpore 2.10 does not read; your program needs {setting}",
                names=names,
                setting=setting,
            )
        ]
    if _NO_SINK in job.words:
        return [
            tr(
                "note: --no_sink means {setting}; it also sets {names}, which MindSpore 2.10 does not read",
                setting=_NO_SINK,
                names=names,
            )
        ]
    return [
        tr(
            "note: --no_sink only sets {names}, which MindSpore 2.10 does not read; PyNative mode "
            "runs operators one by one anyway",
            names=names,
        )
    ]
