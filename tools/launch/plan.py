"""Plans one launch: turns what the user typed into a Plan, or into one line per problem.

It runs once before every launch, so it starts quickly: modules that only some launches need are imported there.
"""

from __future__ import annotations

from hccl_tools.common import project
from hccl_tools.common.language import tr
from hccl_tools.common.refusal import misused
from hccl_tools.common.words import one_line, short_path
from hccl_tools.table import device_range
from tools.launch import checks, environment, planned, plogs, run_folder
from tools.launch import job as jobs
from tools.launch.devices import seen
from tools.launch.engines import placement
from tools.launch.engines.facts import LocalFacts
from tools.launch.planned import Checked, Plan
from tools.launch.programs import trainer_command
from tools.launch.request import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tools.launch.devices.binding import Binding
    from tools.launch.engines.facts import EngineFacts
    from tools.launch.hosts.launchers import Agreement
    from tools.launch.tables.launch_table import LaunchTable


def begin(request: Request, look: Callable[[Plan], Checked] | None = None) -> Plan:
    """The Plan; unless it is only to be printed, its devices are taken and its folder is made.  Raises Refusal.

    look: asks the hosts of the plan, with --preflight.
    """
    checks.folder()
    checks.limits()
    checked: Checked | None = None
    while True:
        plan = make(request)
        planned.check(plan)
        if request.dry_run:
            return plan
        if look:
            checked = checked or look(plan)
            plan = plan.replace(preflight=checked, remarks=(*plan.remarks, *checked.remarks))
        try:
            remarks = seen.take(plan)
            return plan.replace(remarks=(*plan.remarks, *remarks, *run_folder.fill(plan)))
        except (run_folder.Taken, seen.CoresTaken):
            pass  # the next plan is for another folder, or for other cores or ports


def make(request: Request) -> Plan:
    """The Plan, checked in the order in which a user would correct mistakes.  Raises Refusal."""
    request = environment.simulated(request)
    plogs.check(request)
    tolerance = checks.fault_tolerance(request)
    if request.straggler is not None or request.metrics is not None:
        from tools.launch import monitored

        monitored.check(request)
    if request.import_once is not None:
        from tools.launch.programs import import_once

        import_once.check(request)
    if request.worker_log_name is not None:
        run_folder.check_worker_log_name(request)
    run_dir = request.run_dir or run_folder.free_name(request)
    placed, table = place(request, run_dir)
    standing_by = stand_by(request, placed)
    checks.console(request, placed.world)
    checks.data_path(request)
    job = jobs.find(request, placed, run_dir) if placed.ranks else jobs.none()
    job = job.replace(alone=job.alone or request.sim_level is not None)  # a simulation has no scheduler, and no table
    rank_files, job = in_folders(request, job, run_dir)
    own_gpus = request.engine == "local" and request.device_target == "GPU"
    scheduled = (request.device_target == "CPU" or own_gpus) and not job.alone
    needless = scheduled and does_without(request, job)
    if job.needs_mindspore or (scheduled and not needless):  # the scheduler needs it, too
        checks.mindspore()
    # A program may use CPU if GPUs were not requested.
    by_mindspore = job.is_own or (job.needs_mindspore and not request.target_found)
    if checks.devices(request, placed, by_mindspore):
        placed = placed.replace(engine=placed.engine.replace(elsewhere=True))
    if job.resumed and placed.hosts:
        from tools.launch.resume import resuming

        job = job.replace(resumed=resuming.check_hosts(request, placed, job.resumed))
    checks.program_calls(request, job.source)
    if request.engine == "local" and request.placement != "pod" and not own_gpus and not job.alone and not table:
        from tools.launch.tables import launch_table

        table = launch_table.choose(request, [device for _, device in placed.ranks], run_dir, job.source)
    ranks = table.ranks if table else placed.ranks
    binding = bind(request, placed.replace(ranks=ranks))
    imports, of_imports = jobs.imports(request, job, binding)
    path = table.path if table else None
    exports = environment.exports(request, placed, run_dir, path, job.alone, binding, not needless)
    hccl = environment.hccl(request, placed, job.alone)
    exports.update({**(hccl.exports if hccl else {}), **(binding.exports if binding else {})})
    return Plan(
        request=request,
        run_dir=run_dir,
        ranks=ranks,
        hosts=placed.hosts,
        sizes=placed.sizes(),
        engine=of_engine(request, placed.engine, ranks),
        cluster=placed.cluster,
        agreement=agreement(request, placed, job),
        watched_table=placed.watched_table,
        table=table,
        about=job.about,
        trainer=job.words,
        restart=job.restart,
        checkpoints=job.checkpoints,
        resumed=job.resumed,
        rank_files=rank_files,
        imports=imports,
        spares=list(placed.spares),
        scheduler=scheduler(request, placed, exports),
        exports=exports,
        binding=binding,
        hccl=hccl,
        plogs=plogs.choose(request),
        remarks=(
            *(table.remarks if table else ()),
            *placed.remarks,
            *filter(None, [device_range.remark("--devices", request.devices)]),
            *jobs.remarks(request, placed.world, job, rank_files),
            *standing_by,
            *tolerance,
            *([without_scheduler(job)] if needless else []),
            *seen.remarks(request, placed, ranks),
            *(hccl.remarks if hccl else ()),
            *left_out(request, placed, ranks),
            *of_imports,
        ),
    )


def does_without(request: Request, job: jobs.Job) -> bool:
    """Whether ranks of this machine do not need MindSpore's scheduler, because their Python has no MindSpore.

    Their program is a file that does not import it.  If another Python runs it, this is unknown.
    """
    own = job.source is not None and not job.needs_mindspore and job.words[:1] == [trainer_command.python()]
    return own and request.engine == "local" and request.placement is None and not checks.has_mindspore()


def without_scheduler(job: jobs.Job) -> str:
    """Notes for the user about a job without a scheduler."""
    return tr(
        "note: this Python has no MindSpore, and {program} does not import it: the ranks start without MindSpore's"
        " scheduler",
        program=one_line(short_path(job.source or "")),
    )


def place(request: Request, run_dir: str) -> tuple[placement.Placement, LaunchTable | None]:
    """Where the ranks run, and the rank table if they come from one.  Raises Refusal.

    An engine that is not named here starts its ranks on this host, as `local` does.
    """
    way = request.placement or request.engine
    if way == "server":
        from tools.launch.hosts import table_servers

        return table_servers.place(request, run_dir)
    if way == "servers":
        from tools.launch.hosts import all_servers

        return all_servers.place(request, run_dir)
    if way == "pod":
        from hccl_tools.commands import boundary
        from tools.launch.pods import pod_place

        return pod_place.place(request, run_dir, lambda line: boundary.say(request.script, line))
    if way == "mpirun":
        from tools.launch.engines import open_mpi

        return open_mpi.place(request), None
    if way == "srun":
        from tools.launch.engines import slurm

        return slurm.place(request), None
    if way == "simulation":
        return environment.place_simulated(request), None
    if way == "msrun":
        from tools.launch.engines import msrun

        return msrun.place(request), None
    return placement.local(request), None


def in_folders(request: Request, job: jobs.Job, run_dir: str) -> tuple[list[str] | None, jobs.Job]:
    """(what each rank's folder gets, the job that runs there), if the user wants such folders.  Raises Refusal."""
    if not request.rank_folder and request.rank_files is None:
        return None, job
    from tools.launch import rank_folders

    if job.is_own:
        raise misused("--rank_folder: ranks of this project's trainer do not overwrite each other's files")
    paths = rank_folders.choose(request, run_dir)
    first = max(0, len(job.words) - len(request.trainer_arguments) + request.program)  # of the user's own words
    words, restart = (rank_folders.command(words, first, paths) for words in (job.words, job.restart))
    return paths, job.replace(words=words, restart=restart)


def of_engine(request: Request, engine: EngineFacts, ranks: list[tuple[int, int]]) -> EngineFacts:
    """The same with DEVICE_ID of this host's ranks; agents find theirs where they run.  Raises Refusal."""
    if isinstance(engine, LocalFacts):
        return engine.replace(device_ids=seen.device_ids(request, ranks))
    return engine


def stand_by(request: Request, placed: placement.Placement) -> Sequence[str]:
    """Checks the options about lost hosts; returns what to know of the hosts that stand by.  Raises Refusal."""
    if request.min_ranks is None and not placed.spares:
        return ()
    from tools.launch.hosts import spares

    spares.check(request, placed)
    return spares.remarks(request, placed)


def agreement(request: Request, placed: placement.Placement, job: jobs.Job) -> Agreement | None:
    """With restarts, and in pods: what the launchers of several hosts must know to agree.  Raises Refusal."""
    if not placed.meeting or not (request.max_restarts or placed.meeting.always):
        return None
    from tools.launch.hosts import launchers

    config = None if checks.is_program(request) else trainer_command.config_path(request)
    return launchers.agreement(request, placed.meeting, [job.words, job.restart], config)


def bind(request: Request, placed: placement.Placement) -> Binding | None:
    """The cores of the ranks, if the user wants them bound.  Raises Refusal."""
    if not request.bind_core and not request.bind_numa:
        return None
    from tools.launch.devices import binding

    return binding.plan(request, placed)


def left_out(request: Request, placed: placement.Placement, ranks: Sequence[tuple[int, int]]) -> Sequence[str]:
    """Notes about --exclude."""
    if request.exclude is None:
        return ()
    from tools.launch.devices import excluded

    return excluded.remarks(request, placed, ranks)


def scheduler(request: Request, placed: placement.Placement, exports: dict[str, str]) -> list[str]:
    """The command of MindSpore's scheduler, where the launcher starts it: msrun does so itself, and it runs once."""
    elsewhere = request.engine == "local" and placed.cluster.scheduler_node
    if "MS_SCHED_PORT" not in exports or request.engine == "msrun" or elsewhere:
        return []
    return [trainer_command.python(), "-u", project.path("tools", "launch", "engines", "mindspore_scheduler.py")]
