"""The programs that start ranks for us: whether they are here, which version, what they need to know."""

import os
import re

from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import one_line
from hccl_tools.machine import programs

_OPEN_MPI = re.compile(r"\(Open MPI\) ([0-9]+)\.([0-9]+)[0-9.a-z]*")


def open_mpi(asked):
    """What lib/engines/mpirun.sh needs: the version, how hosts are reached, where logs are linked."""
    if not programs.on_path("mpirun"):
        raise Refusal(REFUSED, "mpirun is not on PATH; install Open MPI 4 or 5 (Debian: apt install openmpi-bin)")
    said = programs.ask(["mpirun", "--version"], 20)
    version = open_mpi_version(said.stdout)
    if version is None:
        first = (
            one_line((said.stdout + said.stderr).strip().splitlines()[0]) if said.stdout + said.stderr else "nothing"
        )
        raise Refusal(REFUSED, f"the mpirun on PATH is not Open MPI's; it says: {first}; put Open MPI's first on PATH")
    if int(version.partition(".")[0]) not in (4, 5):
        raise Refusal(REFUSED, f"mpirun is of Open MPI {version}; 4 or 5 is needed, put it first on PATH")
    engine = {"version": version}
    for name in ("ssh", "network"):
        if name in asked:
            engine[name] = asked[name]
    if "output_filename" in asked:
        engine["logs"] = os.path.abspath(asked["output_filename"])
        if os.path.lexists(os.path.join(engine["logs"], "1")):
            raise Refusal(
                REFUSED,
                f"--output_filename {one_line(asked['output_filename'])}: there are logs of an earlier run in it; "
                "name another folder",
            )
    return engine


def open_mpi_version(text):
    """The version in what ``mpirun --version`` prints, such as "4.1.4"; None for another MPI."""
    found = _OPEN_MPI.search(text)
    return found.group(0).rpartition(" ")[2] if found else None


def slurm_nodes():
    """The names of the nodes of the allocation that we are in, in Slurm's order.  Raises Refusal."""
    if "SLURM_JOB_ID" not in os.environ:
        raise Refusal(
            REFUSED,
            "not inside a Slurm job: SLURM_JOB_ID is not set; submit the script, such as: "
            "sbatch -N 2 --ntasks-per-node=8 scripts/run_slurm.sh CONFIG (or get the nodes with salloc first)",
        )
    for program in ("srun", "scontrol"):
        if not programs.on_path(program):
            raise Refusal(REFUSED, f"{program} is not on PATH; load Slurm's environment, or install slurm-client")
    nodes = os.environ.get("SLURM_JOB_NODELIST", "")
    said = programs.ask(["scontrol", "show", "hostnames", nodes], 20)
    if said.status or not said.stdout.split():
        raise Refusal(REFUSED, f"scontrol does not know the nodes {one_line(nodes)}: {one_line(said.stderr.strip())}")
    return said.stdout.split()


def slurm_facts(node):
    """(the IPv4 address of `node`, as Slurm reaches it; seconds from scancel's SIGTERM to SIGKILL, as text).

    MindSpore's scheduler takes no name.
    """
    import socket

    questions = {"node": ["scontrol", "show", "node", "--oneliner", node], "config": ["scontrol", "show", "config"]}
    said = programs.ask_all(questions, 20)
    found = re.search(r"\bNodeAddr=(\S+)", said["node"].stdout)
    name = found.group(1) if found else node
    kill_wait = re.search(r"^KillWait\s*= *([0-9]+)", said["config"].stdout, re.MULTILINE)
    address = ipv4(name, f"node {node}: its address {one_line(name)}", socket)
    return address, kill_wait.group(1) if kill_wait else "30"


def ipv4(name, what, socket):
    """The IPv4 address that `name` stands for.  Raises Refusal, whose text begins with `what`."""
    try:
        return socket.getaddrinfo(name, None, socket.AF_INET)[0][4][0]
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Refusal(REFUSED, f"{what} stands for no IPv4 address ({reason}); put it into /etc/hosts") from error


def address_towards(hosts):
    """Our IPv4 address on the way to `hosts`, as they see us.  Every name must stand for one.  Raises Refusal."""
    import socket

    addresses = [ipv4(name, one_line(name), socket) for name in hosts]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((addresses[0], 9))  # sends nothing: it only looks up the way
        except OSError as error:
            raise Refusal(REFUSED, f"{hosts[0]} ({addresses[0]}): {error.strerror}; is the network up?") from error
        return probe.getsockname()[0]
