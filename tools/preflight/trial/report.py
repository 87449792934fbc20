"""The findings of a trial: as differences of the check, as lines for people, and for programs."""

from __future__ import annotations

from hccl_tools.common.language import tr
from hccl_tools.common.words import clauses, count, named, one_line
from hccl_tools.hosts import node_sets
from tools.preflight.difference import BLOCKS, SLOWS, Difference, Group
from tools.preflight.trial import judge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hccl_tools.common.documents import JsonObject
    from tools.preflight.trial.judge import Slow
    from tools.preflight.trial.search import Fault
    from tools.preflight.trial.trial import Result

KEY = "trial:"  # what the keys of its differences begin with
_MOST_NAMED = 8


def differences(result: Result, hosts: Sequence[str]) -> list[Difference]:
    """One difference for each fault, and one for each slow host, device or pair."""
    found = result.found
    if found.common or (found.unknown and not found.faults):
        return [_no_job(result, hosts)]
    faults = [_fault(fault) for fault in found.faults]
    if found.unknown:
        faults.append(_unknown(found.unknown))
    return [*faults, *map(_slow, result.slow)]


def _difference(key: str, level: str, hosts: Sequence[str], text: str, remedy: str) -> Difference:
    return Difference(key=key, level=level, groups=[Group(hosts=hosts, text=text)], remedy=remedy)


def _no_job(result: Result, hosts: Sequence[str]) -> Difference:
    outcome = result.found.outcome
    jobs = count(result.jobs, "job")
    text = tr("none of {jobs} on several of these hosts passed: {why}", jobs=jobs, why=outcome.why)
    if result.jobs == 1:
        text = tr("the trial failed: {why}", why=outcome.why)
    return _difference(f"{KEY}failed", BLOCKS, hosts, text, _see(outcome.log))


def _see(log: str) -> str:
    return tr("the logs are in {folder}", folder=log)


def _fault(fault: Fault) -> Difference:
    why = fault.outcome.why
    if len(fault.hosts) > 1:
        text = tr("a job on these hosts together fails, on fewer of them it passes: {why}", why=why)
    elif fault.paired:
        text = tr("a job on it and {good} fails, jobs without it pass: {why}", good=fault.paired, why=why)
    else:
        text = tr("a job on it alone fails: {why}", why=why)
    return _difference(f"{KEY}failed", BLOCKS, fault.hosts, text, _see(fault.outcome.log))


def _unknown(hosts: Sequence[str]) -> Difference:
    text = tr("more may fail among these hosts; the limit of jobs or of time was reached first")
    remedy = tr("leave out the hosts above, and start the trial again")
    return _difference(f"{KEY}unknown", BLOCKS, hosts, text, remedy)


def measures() -> dict[str, str]:
    """{measure: its name}."""
    return {
        "join": tr("joining"),
        "allreduce_1k": tr("AllReduce of 1 KiB"),
        "allreduce_1m": tr("AllReduce of 1 MiB"),
        "allreduce_16m": tr("AllReduce of 16 MiB"),
        "pair": tr("AllReduce of 4 MiB with one other host"),
        "matmul": tr("matmul"),
        "read": tr("reading 1 MiB of the data"),
    }


def _slow(slow: Slow) -> Difference:
    text = {
        "measure": measures()[slow.measure],
        "time": duration(slow.seconds),
        "factor": f"{slow.factor:.1f}",
        "usual": duration(slow.usual),
    }
    told = tr("{measure} took {time}, {factor} times the usual {usual}", **text)
    if slow.devices:
        told = clauses(named("device", slow.devices), told)
    remedies = {
        "matmul": tr("look for other programs there, and for the frequency and temperature of its devices"),
        "read": tr("look at the file system and the network of the data there"),
        "pair": tr("look at the cables, ports and speed of its network"),
    }
    return _difference(f"{KEY}{slow.measure}", SLOWS, slow.hosts, told, remedies[slow.measure])


def duration(seconds: float) -> str:
    """A time with three digits: ``4.1 ms``."""
    for unit, size in (("s", 1), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def lines(result: Result) -> Iterator[str]:
    """The trial for people: what was measured, and how to do without the hosts that are named."""
    found = result.found
    if result.figures:
        ranks = {figure.rank for figure in result.figures}
        hosts = count(len(found.left), "host")
        yield tr("The trial of {ranks} on {hosts} passed:", ranks=count(len(ranks), "rank"), hosts=hosts)
        names = measures()
        for measure, (middle, most, host) in judge.summary(result.figures).items():
            told = tr("{measure}: {time}", measure=names[measure], time=duration(middle))
            slowest = tr("the slowest: {time} on {host}", time=duration(most), host=one_line(host))
            yield "  " + (clauses(told, slowest) if len(ranks) > 1 else told)
    if result.advice:
        yield title_of_advice(result)
        for each in result.advice:
            first, *rest = each.text.splitlines()
            if rest:
                yield f"  {each.title}:"
                yield from each.text.splitlines()
            else:
                yield f"  {each.title}: {first}"


def title_of_advice(result: Result) -> str:
    """The line above the commands."""
    hosts = dict.fromkeys([fault.hosts[-1] for fault in result.found.faults] + [slow.hosts[-1] for slow in result.slow])
    return tr("Commands that leave out {hosts}, not run:", hosts=node_sets.folded(hosts, _MOST_NAMED))


def document(result: Result) -> JsonObject:
    """The document for programs."""
    found = result.found
    return {
        "ranks": result.ranks,
        "jobs": result.jobs,
        "seconds": round(result.seconds, 1),
        "passed": list(found.left),
        "unknown": list(found.unknown),
        "figures": [
            {
                "rank": each.rank,
                "host": each.host,
                "device": each.device,
                "measure": each.measure,
                "seconds": each.seconds,
                "peer": each.peer or None,
            }
            for each in result.figures
        ],
        "advice": [{"for": each.kind, "text": each.text} for each in result.advice],
    }
