"""Simulated answers of hosts about their links, for the judge."""

from tools.preflight import links
from tools.preflight.links import Ports
from tools.preflight.links.pairs import FULL, OPEN

PORTS = Ports(ours=(60000, 60015), scheduler=(8118,), others=(22,))


def plan(number, ports=PORTS):
    """The plan for node0, node1 ..., 10.0.x.y."""
    hosts = [f"node{i}" for i in range(number)]
    return links.plan(hosts, {host: f"10.0.{i // 250}.{i % 250 + 1}" for i, host in enumerate(hosts)}, ports)


def number(host):
    return int(host[len("node") :])


class Net:
    """A network that is well, but for what a test sets.

    fault(source, target, port) -> status or None.  ahead: {host: seconds}.  trip, rtt, took: functions of two hosts.
    """

    def __init__(self, planned):
        self.plan = planned
        self.fault = lambda source, target, port: None
        self.big = lambda source, target: None
        self.ahead, self.took = {}, lambda *_: 0.001
        self.trip = self.rtt = lambda *_: 0.0002
        self.changes = {}

    def link(self, source, target, port, what):
        status = self.fault(source, target, port)
        if status:
            return [target, port, status, {"said": "of the kernel"}]
        details = {"source": self.plan[source]["address"]}
        if what != OPEN:
            offset = self.ahead.get(target, 0) - self.ahead.get(source, 0)
            details |= {"seen": details["source"], "trip": self.trip(source, target), "offset": offset}
            details["rtt"] = self.rtt(source, target)
        if what == FULL:
            if status := self.big(source, target):
                return [target, port, status, {**details, "mtu": 9000}]
            details["took"] = self.took(source, target)
        return [target, port, "ok", details]

    def answers(self):
        found = {}
        for host, part in self.plan.items():
            began = 1e9 + self.ahead.get(host, 0)
            found[host] = {
                "links": [self.link(host, target, port, what) for target, _, port, what in part["connects"]],
                "busy": {},
                "passing": [],
                "here": True,
                "strangers": 0,
                "began": began,
                "ended": began + 2,
                "interfaces": {"eth0": [part["address"]]},
            } | self.changes.get(host, {})
        return found

    def judged(self):
        return links.judge(self.answers(), self.plan)

    def lines(self):
        return [found.line() for found in self.judged()]
