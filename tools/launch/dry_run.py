"""--dry_run: prints the plan as shell commands, which can be pasted into a shell."""

from __future__ import annotations

import os
from itertools import islice

from hccl_tools.common.language import tr
from hccl_tools.common.quoting import harmless, quote
from hccl_tools.common.words import count
from tools.launch import rank_folders
from tools.launch.engines import facts
from tools.launch.programs import rank_words
from tools.rank import environment, places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tools.engines.agents import Agents
    from tools.launch.planned import Plan
    from tools.launch.programs.import_once import Imports
    from tools.launch.run import Run

_MOST_SHOWN = 64  # ranks whose own words a line shows, where an engine starts them


def lines(run: Run) -> Iterator[str]:
    """The lines for this launch, which has started nothing and written nothing."""
    from tools.engines.agents import Agents

    yield from _common(run)
    scheduler = run.engine.scheduler_words()
    if scheduler:
        yield "# the scheduler of MindSpore's cluster"
        start = ["env", "-u", "RANK_TABLE_FILE", "MS_ROLE=MS_SCHED", *scheduler]
        yield _behind(start, os.path.join(run.plan.run_dir, "scheduler.log"))
    if isinstance(run.engine, Agents):
        yield from _engine(run, run.engine)
        if scheduler:
            yield "kill $! # the scheduler"
    else:
        yield from _ranks(run)
    yield "wait"


def _common(run: Run) -> Iterator[str]:
    """What all ranks have in common."""
    plan = run.plan
    name, ranks = harmless(run.voice.name), count(len(plan.ranks), "rank")
    yield "# " + tr("{name}: {ranks}; this is what it would start", name=name, ranks=ranks)
    yield "# " + harmless(tr("every rank runs {about}", about=_about(plan)))
    if plan.request.defaults:
        yield "# " + harmless(tr("options from MSLAUNCH_OPTIONS: {options}", options=plan.request.defaults))
    if plan.restart:
        yield f"# from the second attempt on it runs: {_line(plan.restart)}"
    if plan.imports:
        yield "# " + _imports(plan.request.engine, plan.imports)
    if plan.hccl:
        yield "# " + tr("HCCL listens at ports {ports}: {origin}", ports=plan.hccl.words(), origin=plan.hccl.whence())
    yield _line(["cd", os.getcwd()])
    yield _line(["mkdir", "-p", plan.run_dir])
    for command in (plan.table.setup if plan.table else (), plan.resumed.convert if plan.resumed else ()):
        if command:
            yield _line(command)
    for variable in environment.CONTRACT:
        if variable not in plan.exports:
            yield f"unset {variable}"
    if plan.exports:
        yield _line(["export", *(f"{variable}={value}" for variable, value in plan.exports.items())])


def _imports(engine: str, imports: Imports) -> str:
    """What is imported once, for people."""
    names = " ".join(name for name, needed in imports.modules if needed)
    if engine != "local":
        return tr(
            "--import_once: on each host one process imports {names}, and the ranks there are its forks", names=names
        )
    return tr("--import_once: one process imports {names}, and the ranks are its forks", names=names)


def _about(plan: Plan) -> str:
    """What every rank runs, for people."""
    if not plan.resumed:
        return plan.about
    return tr("{about}; it continues {where}", about=plan.about, where=plan.resumed.where())


def _ranks(run: Run) -> Iterator[str]:
    """Every rank of this host, with its own variables."""
    plan = run.plan
    device_ids, sizes = facts.of(facts.LocalFacts, plan.engine).device_ids, facts.sizes_words(plan.sizes)
    plogs = places.Plogs(plan.plogs.word() if plan.plogs else "", run.logs)
    for local_rank, (rank, device) in enumerate(plan.ranks):
        named = device_ids[local_rank] if device_ids else device
        own = environment.of_rank(
            run.environment, rank=rank, local_rank=local_rank, device=named, sizes=sizes, mark=run.mark
        )
        del own[environment.MARK]
        cores = ",".join(map(str, plan.binding.cores.get(rank, ()))) if plan.binding else ""
        folder = plogs.folder(str(rank))
        if cores:
            own[places.CORES_VARIABLE] = f"[{cores}]".encode()
        if folder:
            own[places.PLOG_VARIABLE] = os.fsencode(folder)
        yield f"# rank {rank} on device {device}" + (f", DEVICE_ID {named}" if named != device else "")
        if folder:
            yield _line(["mkdir", "-p", folder])
        there: list[str] = []
        if plan.rank_files is not None:
            yield from _copies(run, rank)
            own[b"PWD"] = os.fsencode(rank_folders.of_rank(plan.run_dir, rank))
            there = ["-C", rank_folders.of_rank(plan.run_dir, rank)]
        words = rank_words.command(plan, run.trainer, rank, local_rank, named)
        bound = ["taskset", "-c", cores] if cores else []
        variables = (os.fsdecode(name + b"=" + value) for name, value in own.items())
        yield _behind(["env", *there, *variables, *bound, *words], os.path.join(plan.run_dir, f"rank_{rank}.log"))


def _copies(run: Run, rank: int) -> Iterator[str]:
    """What makes the rank's folder."""
    folder, paths = rank_folders.of_rank(run.plan.run_dir, rank), run.plan.rank_files or []
    yield _line(["mkdir", "-p", folder])
    below = [path for path in paths if rank_folders.place(path) == os.path.normpath(path)]
    if below:
        yield _line(["cp", "-r", "--parents", "--", *below, folder])
    others = [path for path in paths if path not in below]
    if others:
        yield _line(["cp", "-r", "--", *others, folder])


def _engine(run: Run, engine: Agents) -> Iterator[str]:
    """The engine's command; its agents have no launcher."""
    from tools.rank.told import OF_PLAN

    found = engine.environment()
    told = [b"LAUNCH_" + name.encode() for name in OF_PLAN]
    told += sorted(name for name in found if name.startswith(environment.FOR_RANKS))
    yield _line(["export", *(os.fsdecode(name + b"=" + found[name]) for name in told)])
    for rank, own in islice(rank_words.own(run.plan), _MOST_SHOWN):
        yield "# " + harmless(tr("rank {rank} gets {words}", rank=rank, words=" ".join(map(quote, own))))
    words, agent = engine.command(found), engine.agent_words()
    if words[-len(agent) :] != agent:
        words += agent
    yield _line([*words, *run.trainer])


def _line(words: Iterable[str]) -> str:
    """The words as one line, quoted for the shell."""
    return " ".join(map(quote, words))


def _behind(words: Sequence[str], log: str) -> str:
    """A line that starts the words in the background."""
    return f"{_line(words)} >{quote(log)} 2>&1 </dev/null &"
