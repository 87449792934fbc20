#!/usr/bin/env python3
"""How long check_network.sh takes for 8 to 1,024 hosts with 8 devices each.

The hosts are simulated in two ways.  In the first, one process answers for all of them, each a second after it was
asked, as hosts do that have processors of their own: this measures what the host costs where the command is typed.
In the second, everything that a host runs (Python and 60 calls of hccn_tool) runs on this machine.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import figures

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from hccl_tools.hosts.answering import frame, unpacked
from hccl_tools.hosts.cards import Card

DEVICES = 8
ANSWER_SECONDS = 1.0
CONNECT_SECONDS = 8.0  # ssh's ConnectTimeout
FAR, NEAR = (8, 32, 128, 512, 1024), (1, 8, 32, 128)
HANGING = 10  # hosts that do not answer
# Gives its host and its first line to the process that answers for all hosts, and prints what that one says.
SSH = r"""#!/usr/bin/env bash
while [[ $1 == -* ]]; do shift; done
exec 3<>"/dev/tcp/127.0.0.1/$PORT"
printf '\n'
read -r line
printf '%s %s\n' "$1" "$line" >&3
read -r status <&3
while read -r line <&3; do printf '%s\n' "$line"; done
[[ $status == 0 ]] || printf 'ssh: connect to host %s port 22: Connection timed out\n' "$1" >&2
exit "$status"
"""


def tables():
    """Measures; yields figures.Tables."""
    with tempfile.TemporaryDirectory() as name:
        rows = list(far(Path(name)))
    note = (
        f"One process answers for all hosts, each after {ANSWER_SECONDS:g} s; one run. Memory: the most that the "
        "command used, without its ssh processes, which are simulated. A host that hangs ends as with ssh's "
        f"ConnectTimeout, after {CONNECT_SECONDS:g} s."
    )
    columns = ["hosts", "in all", "processor time", "memory"]
    yield figures.Table(f"check_network.sh, {DEVICES} devices a host", columns, rows, note)
    with tempfile.TemporaryDirectory() as name:
        rows = list(near(Path(name)))
    note = "Python and hccn_tool of all hosts run on this machine, too; one run."
    yield figures.Table("check_network.sh, all hosts on this machine", ["hosts", "in all", "a host"], rows, note)


def far(folder):
    """A row for each number of hosts that one process answers for."""
    (folder / "ssh").write_text(SSH)
    (folder / "ssh").chmod(0o755)
    for hosts, hanging in [*((hosts, 0) for hosts in FAR), (FAR[-1], HANGING)]:
        prepare(folder, hosts)
        with answering(hosts, hanging) as port:
            seconds, processor, memory = check(folder, hosts, hanging, {"PORT": str(port)})
        name = f"{hosts:,}" + (f", {hanging} of them hang" if hanging else "")
        yield [name, f"{seconds:.1f} s", f"{processor:.1f} s", f"{memory / 2**20:.0f} MiB"]


def near(folder):
    """A row for each number of hosts whose programs all run here."""
    for name in ("hccn_tool", "ssh"):
        (folder / name).symlink_to(ROOT / "tests" / "fixtures" / "bin" / name)
    for hosts in NEAR:
        prepare(folder, hosts)
        seconds, _, _ = check(folder, hosts, 0, {"SSH_SIM": str(folder)})
        yield [hosts, f"{seconds:.1f} s", f"{seconds / hosts:.2f} s"]


def address(number, device):
    return f"10.{100 + number // 250}.{number % 250}.{device + 1}"


def prepare(folder, hosts):
    """The table and the hostfile, and the cards of each host."""
    servers = []
    for number in range(hosts):
        name = f"10.9{number // 250}.{number % 250}.1"
        ips = [address(number, device) for device in range(DEVICES)]
        entries = [
            {"device_id": str(device), "device_ip": ip, "rank_id": str(number * DEVICES + device)}
            for device, ip in enumerate(ips)
        ]
        servers.append({"server_id": name, "device": entries})
        (folder / name).mkdir(exist_ok=True)
        lines = [f"address_{device}={ip}\nnetmask_{device}=255.0.0.0\n" for device, ip in enumerate(ips)]
        (folder / name / "hccn.conf").write_text("".join(lines))
    table = {"version": "1.0", "server_count": str(hosts), "server_list": servers, "status": "completed"}
    (folder / "table.json").write_text(json.dumps(table))
    (folder / "hosts").write_text("".join(f"{server['server_id']} slots=8\n" for server in servers))


def check(folder, hosts, hanging, environment):
    """(seconds, seconds of processor time, bytes of memory) of one check."""
    environment = {**os.environ, **environment, "PATH": f"{folder}:{os.environ['PATH']}"}
    script = ["bash", str(ROOT / "scripts" / "check_network.sh"), "--hostfile", "hosts", "table.json"]
    with tempfile.TemporaryFile() as out:
        began = time.monotonic()
        process = subprocess.Popen(script, cwd=folder, env=environment, stdout=out, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - began
        out.seek(0)
        said = out.read().decode()
    summary = f"{(hosts - hanging) * DEVICES} devices asked on {hosts - hanging} of {hosts} servers, 0 with a problem"
    assert summary in said and os.waitstatus_to_exitcode(status) == bool(hanging), said[-500:]
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


@contextlib.contextmanager
def answering(hosts, hanging, answer=None):
    """The port of a server that answers for all hosts by answer(number, line); the last `hanging` ones never do."""
    answer = answer or of_cards
    loop, ready, found = asyncio.new_event_loop(), threading.Event(), []

    async def serve():
        server = await asyncio.start_server(one, "127.0.0.1", 0, backlog=1024)
        found.append(server.sockets[0].getsockname()[1])
        ready.set()

    async def one(reader, writer):
        name, line = (await reader.readline()).split()
        number = (int(name.split(b".")[1]) - 90) * 250 + int(name.split(b".")[2])
        hangs = number >= hosts - hanging
        await asyncio.sleep(CONNECT_SECONDS if hangs else ANSWER_SECONDS)
        writer.write(b"255\n" if hangs else b"0" + answer(number, line))
        writer.close()

    threading.Thread(target=lambda: (loop.create_task(serve()), loop.run_forever()), daemon=True).start()
    ready.wait()
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(loop.stop)


def of_cards(number, line):
    """The frame of a host whose cards are well."""
    asked = unpacked(line)
    assert len(asked["question"][1]) == DEVICES
    well = {"netmask": "255.0.0.0", "link": "UP", "tls": "0", "gateway": None, "health": "Success"}
    cards = {
        device: Card(ip=address(number, device), lost={}, failed={}, **well).as_dict() for device in range(DEVICES)
    }
    return frame({"content": cards, "lines": [], "version": asked["version"]}, asked["nonce"])


if __name__ == "__main__":
    sys.exit(figures.show(tables()))
