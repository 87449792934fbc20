"""Results of checks that never were, for the page: all alike, and 64 hosts with differences of each level."""

from healthy_hosts import answers, facts_of, names

from tools.preflight import compare
from tools.preflight.words import Found

MADE = "2026-01-31T12:00:00Z"
SILENT = "node63"


def good(number=64):
    said = answers(number)
    return Found(hosts=names(number), differences=compare.compare(said), facts=facts_of(said))


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
