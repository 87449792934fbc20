"""Results of checks that never were, for the page: all alike, and 64 hosts with differences of each level."""

from healthy_hosts import answers, facts_of, names

from tools.preflight import compare
from tools.preflight.trial import judge, report, search, trial
from tools.preflight.trial.judge import Figure
from tools.preflight.trial.search import Outcome
from tools.preflight.words import Found

MADE = "2026-01-31T12:00:00Z"
SILENT = "node63"


def good(number=64):
    said = answers(number)
    return Found(hosts=names(number), differences=compare.compare(said), facts=facts_of(said))


BASE = {
    "join": 9.2,
    "allreduce_1k": 6e-5,
    "allreduce_1m": 3e-4,
    "allreduce_16m": 3.1e-3,
    "matmul": 1.7e-3,
    "read": 4e-3,
}


def figures(number, ranks=8):
    """What the ranks of so many hosts took: device 3 of node7 and the network of node5 are slow."""
    found = []
    for rank in range(number * ranks):
        at, device = divmod(rank, ranks)
        spread = 1 + (rank * 37 % 11) / 100
        of_rank = {name: seconds * spread for name, seconds in BASE.items()}
        if (at, device) == (7, 3):
            of_rank["matmul"] *= 2.4
        found += [Figure(rank, f"node{at}", device, name, seconds) for name, seconds in of_rank.items()]
        if device == 0:
            peers = {f"pair_{at % 2}": (at + 1) % number, f"pair_{1 - at % 2}": (at - 1) % number}
            for name, peer in peers.items():
                slow = 9 if 5 in (at, peer) else 1
                found.append(Figure(rank, f"node{at}", 0, name, 2.5e-3 * spread * slow, f"node{peer}"))
    return found


def tried(number=32, fails=12):
    """A trial that has found node12, and what is slow on the other hosts; all hosts are alike."""
    of_ranks = [figure for figure in figures(number) if figure.host != f"node{fails}"]
    outcome = Outcome(
        passed=False, why="rank 5 ended with exit code 1: RuntimeError: <b>HcclCommInitRootInfo", log="l/4"
    )
    fault = search.Fault(hosts=(f"node{fails}",), outcome=outcome, paired="node0")
    left = [host for host in names(number) if host != f"node{fails}"]
    found = search.Found(faults=[fault], left=left, outcome=Outcome(passed=True, figures=of_ranks), jobs=9)
    slow = judge.slow(of_ranks)
    advised = trial.advice_of([f"node{fails}", "node5"], {"node7": [3]}, dict.fromkeys(names(number), 8), 1.8e9)
    result = trial.Result(
        ranks=number * 8, seconds=131.6, jobs=9, found=found, figures=of_ranks, slow=slow, advice=advised
    )
    return good(number).replace(differences=report.differences(result, names(number)), trial=result)


def all_fail(number=4):
    """A trial of which no job has passed."""
    outcome = Outcome(passed=False, why="the launch ended with exit code 1", log="logs/x/job_1")
    found = search.Found(faults=[], left=[], outcome=outcome, jobs=7, common=True)
    result = trial.Result(ranks=number, seconds=44.0, jobs=7, found=found, figures=[], slow=[])
    return good(number).replace(differences=report.differences(result, names(number)), trial=result)


def differing(number=64):
    """node3 and node7 to node9 would stop the job, node5 slows it, node20 may surprise, node63 says nothing."""
    old = {"cann": "8.1.RC1", "package:numpy": "1.26.0"}
    changes = {n: old for n in (3, 7, 8, 9)}
    changes[5] = {"mtu": 1400, "variable:MS_ACCESS_TOKEN": "<0123abcd>"}
    changes[20] = {"kernel": "6.6.0-<b>&\"'", "variable:HCCL_BUFFSIZE": "300"}
    changes[21] = {"held": ["0: 4711 python (310 MB)"], "logs_free": 1 << 20}
    said = {host: answer for host, answer in answers(number, changes).items() if host != SILENT}
    lines = [f"{SILENT}: no answer; ssh: connect to host {SILENT} port 22: No route to host"]
    return Found(
        hosts=names(number), differences=compare.compare(said), silent=[SILENT], lines=lines, facts=facts_of(said)
    )
