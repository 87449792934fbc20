"""Engine "mpirun": Open MPI 4 or 5 starts the ranks, on this host or over ssh on several."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from tools.engines.relayed import Relayed
from tools.launch.engines.facts import MpirunFacts, of
from tools.rank import environment
from tools.rank.environment import Environment

# Variables that belong to a host, a login or an engine, so other hosts must not get them.
_OWN = frozenset(
    (
        *("HOME", "USER", "LOGNAME", "SHELL", "MAIL", "PWD", "OLDPWD", "SHLVL", "_", "TERM", "HOSTNAME", "DISPLAY"),
        *("TMPDIR", "LINES", "COLUMNS", "LS_COLORS"),
    )
)
_OWN_PREFIXES = ("SSH_", "XDG_", "DBUS_", "OMPI_", "PMIX_", "PRTE_", "SLURM_", "SLURMD_", "BASH_")


class Mpirun(Relayed):
    """The reasons for its less obvious options; Open MPI's documentation describes what they do:

    --bind-to none   with one or two ranks per host, Open MPI would bind each rank to one core
    -wdir, -x        without them, ranks on other hosts start in the home folder, with the environment of ssh's shell
    --prefix         of a wheel: mpirun starts its programs on other hosts from this folder, which is on no PATH there
    keepalive        mpirun notices in about 11 s, not in eight minutes, that a host's network is cut off.  A host that
                     is only busy is not given up, because its kernel answers
    routed_radix     connects mpirun to every host directly.  By default it connects to 64 hosts, and these connect to
                     the others; then mpirun never learns that a host behind another one is lost
    num_concurrent   how many ssh begin at a time.  Each one stays, so with fewer (the default is 128) than hosts,
                     mpirun would wait for ever
    """

    name = "mpirun"

    def command(self, environment_: Environment) -> list[str]:
        facts, given = self._facts(), self.run.command.mpirun.given
        newer = int(facts.mpi.version.partition(".")[0]) >= 5  # its run time, PRRTE, has names of its own
        words = ["mpirun", *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]
        words += ["-n", str(facts.ranks)]
        words += ["--hostfile", facts.hostfile] if facts.hostfile else ["-H", ",".join(facts.hosts)]
        if "map_by" not in given:
            words += ["--map-by", facts.map_by]
        if not self.run.command.mpirun.binds():
            words += ["--bind-to", "none"]
        mca = "--prtemca" if newer else "-mca"
        failure = "state_base_error_non_zero_exit" if newer else "orte_abort_on_non_zero_status"
        abort = "0" if self.bears_failures(environment_) else "1"
        words += ["-wdir", os.getcwd(), mca, failure, abort]
        words += self._of_hosts(mca, newer)
        for name in exported(environment_, self.run.command.mpirun.export):
            words += ["-x", name]
        return words + list(self.run.command.mpirun.passed)

    def _of_hosts(self, mca: str, newer: bool) -> list[str]:
        """The words about how mpirun reaches its hosts."""
        mpi, given = self._facts().mpi, self.run.command.mpirun.given
        words: list[str] = []
        if mpi.prefix and "prefix" not in given:
            words += ["--prefix", mpi.prefix]
        hosts = str(len(set(self.run.plan.hosts)))
        launcher = "plm_ssh" if newer else "plm_rsh"
        if hosts not in ("0", "1"):
            words += [mca, "routed_radix", hosts, mca, f"{launcher}_num_concurrent", hosts]
        for name, value in (("time", "5"), ("intvl", "2"), ("probes", "3")):
            parameter = f"oob_tcp_keepalive_{name}"
            variable = f"{'PRTE' if newer else 'OMPI'}_MCA_{parameter}"  # what the user has set counts
            if not self.run.environment.get(variable.encode()) and parameter not in given:
                words += [mca, parameter, value]
        if mpi.ssh:
            words += [mca, f"{launcher}_agent", mpi.ssh]
        if mpi.network:
            if "oob_tcp_if_include" not in given:
                words += [mca, "oob_tcp_if_include", mpi.network]
            if "btl_tcp_if_include" not in given:
                words += ["-mca", "btl_tcp_if_include", mpi.network]
        return words

    def _facts(self) -> MpirunFacts:
        return of(MpirunFacts, self.run.plan.engine)

    def links(self) -> str:
        return self._facts().mpi.logs or ""

    @staticmethod
    def lost_in(lines: Iterable[str]) -> str:
        """The host that mpirun has lost, from a message of mpirun or of ssh.

        If mpirun first sees that ssh has ended, it reports only that a daemon could not be started; then ssh's message
        names the host, or Open MPI 5, with the status of an ssh that has lost its connection (255) or was killed (0).
        """
        found = remote = ""
        for line in lines:
            if "Remote daemon:" in line and " on node " in line:
                return line.rpartition(" on node ")[2]
            if "Remote host: " in line:
                remote = line.rpartition(" ")[2]
            elif line.endswith(("Daemon exit status: 0", "Daemon exit status: 255")):
                found = found or remote
            elif line.startswith("Connection to ") and line.endswith(" closed by remote host."):
                found = line[len("Connection to ") :].partition(" ")[0]
            elif line.startswith("Timeout, server ") and line.endswith(" not responding."):
                found = line[len("Timeout, server ") :].partition(" ")[0]
        return found


def exported(found: Environment, always: Iterable[str]) -> Iterator[str]:
    """The names of the variables that all hosts get, sorted."""
    wanted = set(always)
    for key in sorted(found):
        name = key.decode("ascii", "replace")
        if environment.is_name(key) and (name in wanted or not (name in _OWN or name.startswith(_OWN_PREFIXES))):
            yield name
