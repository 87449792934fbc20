"""Runs a trial: one job on all hosts, more jobs if something fails or is slow, and the conclusions."""

from __future__ import annotations

import json
import time

from hccl_tools.common import how_far
from hccl_tools.common.language import tr
from hccl_tools.common.quoting import quote
from hccl_tools.common.record import Record, Row
from hccl_tools.common.words import count
from hccl_tools.hosts import node_sets
from tools.preflight.trial import judge, search
from tools.preflight.trial.jobs import Jobs
from tools.preflight.trial.setting import SRUN, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tools.preflight.trial.judge import Figure, Slow
    from tools.preflight.trial.setting import Setting

_REASON = "failed a trial of preflight.sh"
# The sender and the code must be in publicFaultConfiguration.json of ClusterD, or in its publicCustomization.json:
# others are dropped.  Of MindCluster 7.3 and 26.0; 110001010 is a fault of a node that it takes as sub-healthy.
# The form is that of the manual's page "ConfigMap" of public faults (hiascend.com/document, MindCluster 730,
# dlug_api_106), the limits are those of ClusterD's own check (mind-cluster, publicfault/checker.go).
_SENDER, _CODE = "fd-online", "110001010"
_MOST_HOSTS = 1000  # of one fault
_MOST_DEVICES = 32  # of a host, from 0
_MOST_CONFIRMED = 4  # slow hosts that get a job of their own
_WHOLE = 10  # so many times as long as one job at most, with all jobs


class Result(Record):
    """The findings of the trial.

    figures: of the last job that all hosts not named have passed; empty if none has.
    slow:    what was slow there, and again in a job with one good host, as far as there was one.
    """

    ranks: int
    seconds: float
    jobs: int
    found: search.Found
    figures: Sequence[Figure]
    slow: Sequence[Slow]
    advice: Sequence[Advice] = ()


def plan(setting: Setting) -> str:
    """The text for the user before the first job."""
    ranks = sum(setting.slots.values())
    text = {
        "ranks": count(ranks, "rank"),
        "hosts": count(len(setting.slots), "host"),
        "seconds": seconds(ranks),
        "jobs": count(search.most_jobs(len(setting.slots)), "job"),
        "whole": _WHOLE * seconds(ranks) // 60,
    }
    return tr(
        "the trial starts {ranks} on {hosts}: {seconds} s at most;"
        " to find what fails or is slow, {jobs} and {whole} minutes at most",
        **text,
    )


def run(setting: Setting, now: Callable[[], float] = time.time) -> Result:
    """Runs all jobs of a trial.  Raises Refusal if the first one cannot start."""
    hosts = list(setting.slots)
    ranks = sum(setting.slots.values())
    began = time.monotonic()
    limit = search.Limit(jobs=search.most_jobs(len(hosts)), until=began + _WHOLE * seconds(ranks))
    jobs = Jobs(setting)
    with how_far.doing(tr("trial: jobs"), limit.jobs) as work:

        def job(some: Sequence[str]) -> search.Outcome:
            work.about = tr("now on {hosts}", hosts=count(len(some), "host"))
            try:
                return jobs.run(some)
            finally:
                work.done += 1

        found = search.find(hosts, job, limit)
        figures = found.outcome.figures if found.outcome.passed and not found.common else ()
        slow = confirmed(judge.slow(figures), found.left, job)
    bad = {host for fault in found.faults for host in fault.hosts[-1:]} if not found.common else set[str]()
    return Result(
        ranks=ranks,
        seconds=time.monotonic() - began,
        jobs=jobs.started,
        found=found,
        figures=figures,
        slow=slow,
        advice=_advice([host for host in hosts if host in bad], slow, setting, now()),
    )


def confirmed(
    found: Sequence[Slow], hosts: Sequence[str], job: Callable[[Sequence[str]], search.Outcome]
) -> list[Slow]:
    """The hosts that are slow again, next to a host that is not slow, if there is one."""
    blamed = {host for each in found for host in each.hosts}
    good = next((host for host in hosts if host not in blamed), "")
    outcomes: dict[tuple[str, ...], search.Outcome] = {}
    sure = []
    for each in found:
        beside = tuple(dict.fromkeys([*each.hosts, *([good] if good and len(each.hosts) == 1 else [])]))
        if beside not in outcomes and len(outcomes) < _MOST_CONFIRMED:
            outcomes[beside] = job(beside)
        outcome = outcomes.get(beside)
        if outcome is None or not outcome.passed or _is_slow(each, outcome.figures):
            sure.append(each)
    return sure


def _is_slow(before: Slow, figures: Sequence[Figure]) -> bool:
    """Whether the slowest of these is as slow as from where on the first job called it slow."""
    again = [
        figure.seconds
        for figure in figures
        if figure.host in before.hosts and (figure.measure == before.measure or figure.measure.startswith(judge.PAIR))
        if (before.measure == "pair") == figure.measure.startswith(judge.PAIR)
    ]
    return bool(again) and max(again) > before.usual * judge.FACTOR


def _advice(bad: Sequence[str], slow: Sequence[Slow], setting: Setting, now: float) -> list[Advice]:
    """How to do without what fails or is slow; of a slow pair the second host."""
    hosts = list(bad)
    in_slurm = setting.starter == SRUN  # which gives each node its devices: one of them cannot be left out
    devices: dict[str, list[int]] = {}
    for each in slow:
        if each.devices and not in_slurm:
            devices.setdefault(each.hosts[0], []).extend(each.devices)
        elif each.hosts[-1] not in hosts:
            hosts.append(each.hosts[-1])
    some = {host: sorted(set(numbers)) for host, numbers in devices.items() if host not in hosts}
    return for_slurm(hosts) if in_slurm else advice_of(hosts, some, setting.slots, now)


# ---- The commands by which others keep jobs off hosts: printed, never run.
#
# The names of hosts are those of the check, which hostfile.fault_of_host has let pass.  Batch systems may call them
# otherwise, which the text states.


class Advice(Row):
    """One thing to do: for whom, and the command or the document."""

    kind: str  # exclude, sbatch, slurm, kubernetes, mindcluster
    title: str
    text: str


def advice_of(
    hosts: Sequence[str], devices: Mapping[str, Sequence[int]], slots: Mapping[str, int], now: float
) -> list[Advice]:
    """The advice for these hosts, and these devices of others; now: seconds since 1970. slots: {host: its ranks}."""
    if not hosts and not devices:
        return []
    parts = [*hosts, *(f"{host}:{','.join(map(str, numbers))}" for host, numbers in devices.items())]
    # In a list with devices a comma would be read as another device: @ is what --exclude takes between hosts.
    found = [Advice("exclude", tr("for the launch"), f"--exclude {quote(('@' if devices else ',').join(parts))}")]
    if hosts:
        found.append(_drain(hosts))
        found.append(Advice("kubernetes", tr("for Kubernetes"), f"kubectl cordon {' '.join(map(quote, hosts))}"))
    both = {**dict.fromkeys(hosts, ()), **devices}
    text = config_map({host: numbers or range(slots.get(host, 8)) for host, numbers in both.items()}, now)
    found.append(Advice("mindcluster", tr("for MindCluster, for kubectl apply -f -"), text))
    return found


def for_slurm(hosts: Sequence[str]) -> list[Advice]:
    """The advice for these nodes of an allocation: only Slurm starts jobs there."""
    if not hosts:
        return []
    launch = Advice("exclude", tr("for the launch"), f"--exclude {quote(','.join(hosts))}")
    batch = Advice("sbatch", tr("for sbatch and salloc"), f"--exclude={quote(_folded(hosts))}")
    return [launch, batch, _drain(hosts)]


def _drain(hosts: Sequence[str]) -> Advice:
    command = f"scontrol update nodename={quote(_folded(hosts))} state=drain reason={quote(_REASON)}"
    return Advice("slurm", tr("for Slurm"), command)


def _folded(hosts: Sequence[str]) -> str:
    """As Slurm writes sets of nodes."""
    return node_sets.folded(hosts, len(hosts)).replace(", ", ",")


def config_map(devices: Mapping[str, Sequence[int]], now: float) -> str:
    """The ConfigMap through which ClusterD accepts external faults; JSON within YAML, both escaped as JSON."""
    moment = int(now * 1000)
    fault = {
        "faultId": f"preflight-{moment}-fault",
        "faultType": "Node",
        "faultCode": _CODE,
        "faultTime": moment,
        "assertion": "occur",
        "influence": [
            {"nodeName": host.lower(), "deviceIds": [number for number in numbers if number < _MOST_DEVICES]}
            for host, numbers in list(devices.items())[:_MOST_HOSTS]
        ],
        "description": _REASON,
    }
    message = {
        "id": f"preflight-{moment}",
        "timestamp": moment,
        "version": "1.0",
        "resource": _SENDER,
        "faults": [fault],
    }
    return "\n".join(
        [
            "apiVersion: v1",
            "kind: ConfigMap",
            "metadata:",
            f"  name: preflight-{moment}",
            "  namespace: mindx-dl",
            "  labels:",
            '    mc-consumer-publicfault: "true"',
            "data:",
            "  PublicFault: |",
            f"    {json.dumps(message)}",
        ]
    )
