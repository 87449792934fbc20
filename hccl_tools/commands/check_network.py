"""Checks the network of every device in a rank table; scripts/check_network.sh is what users type.

Cards are asked on this host, or by mpirun on every host of a hostfile; what they say is judged here,
where it all comes together.
"""

import argparse
import base64
import importlib
import json
import os
import signal
import socket
import sys
import zlib

from hccl_tools.build import output
from hccl_tools.check import verdict
from hccl_tools.common.problem import errors
from hccl_tools.common.words import one_line
from hccl_tools.hosts import ask, cards, cards_judge, hostfile
from hccl_tools.machine import host, interpreter, programs
from hccl_tools.table import rank_table

PROGRAM = "check_network.sh"
_SCRIPT = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))), "scripts", PROGRAM
)


class Refusal(Exception):
    """There is nothing to judge; the lines say why, `status` is the exit code."""

    def __init__(self, status, *lines):
        super().__init__("\n".join(lines))
        self.status = status
        self.lines = lines


def main(argv=None):
    """Runs the command; returns its exit code."""
    options = parse_arguments(argv)
    signals_interrupt()
    try:
        if options.answer:
            return answer(options)
        code = run(options)
        sys.stdout.flush()
        return code
    except Refusal as refusal:
        for line in refusal.lines:
            say(line)
        return refusal.status
    except KeyboardInterrupt as interrupt:
        say("interrupted; the detect addresses of this host are as they were before")
        return 128 + (interrupt.args[0] if interrupt.args else signal.SIGINT)
    except ImportError as error:  # jsonschema, to say why a table is bad; rich, to draw a matrix
        say(f"this needs {error.name}; {interpreter.remedy_for(error.name)}")
        return 2
    except OSError as error:  # a stdout that is full, or closed by the reader
        if not isinstance(error, BrokenPipeError):
            say(f"cannot write to stdout: {error.strerror}")
        output.drop_stdout()
        return 2


def signals_interrupt():
    """The first INT, TERM or HUP raises KeyboardInterrupt(number); later ones must not stop the cleaning up."""
    names = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def interrupt(number, _):
        for name in names:
            signal.signal(name, signal.SIG_IGN)
        raise KeyboardInterrupt(number)

    for name in names:
        if signal.getsignal(name) is not signal.SIG_IGN:  # under nohup a hang-up stays ignored
            signal.signal(name, interrupt)


def parse_arguments(argv):
    """The command line as a namespace."""
    with open(_SCRIPT, encoding="utf-8") as script:  # its header is the help, as of every script
        header = [line[1:].strip("\n")[1:] for line in script if line.startswith("#") and not line.startswith("#!")]
    header = header[: next((n for n, line in enumerate(header) if line.startswith("shellcheck")), len(header))]
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        usage=argparse.SUPPRESS,
        description="\n".join(header) + "\n\nExit: 0 all is well, 1 something is wrong, 2 usage, or nothing to ask.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("table", metavar="RANK_TABLE_FILE", help="the table whose devices are asked")
    add("--hostfile", metavar="FILE", help="ask all hosts of this file (Open MPI's syntax), by one mpirun")
    add("--ping", action="store_true", help="also ping, from each device, its like on every other server")
    add("--server_id", "--server-id", metavar="ID", help="this host's server_id in the table (default: by its address)")
    add("--format", choices=("text", "json"), default="text", help="default: %(default)s")
    add("--answer", metavar="NONCE", help=argparse.SUPPRESS)  # what --hostfile starts on every host
    add("--hosts", nargs="+", default=(), help=argparse.SUPPRESS)
    argv = sys.argv[1:] if argv is None else argv
    options = parser.parse_args(argv or ["--help"])
    if options.hostfile and options.server_id:
        parser.error("--server_id is for one host; with --hostfile each finds its own by its address")
    return options


# ---- where the command was typed -----------------------------------------------------------------


def run(options):
    """Asks, judges and prints; returns the exit code."""
    servers = read_servers(options.table)
    if options.format == "text":
        importlib.import_module("hccl_tools.show.terminal")  # it needs rich, which is to be said before a card is asked
    if options.hostfile:
        facts, lines = ask_hosts(options, servers)
    else:
        server = own_server(options, servers)
        facts, lines = {server.server_id: cards.ask(questions(servers, server, options.ping))}, []
        for other in servers:
            if other is not server:
                say(f"server {other.server_id} is not this host and was not asked; --hostfile FILE asks all")
    for line in lines:
        say(line)
    for line in kept(facts):
        say(line)
    findings = cards_judge.judge(servers, facts)
    silent = [server.server_id for server in servers if server.server_id not in facts] if options.hostfile else []
    show(options, servers, facts, findings, silent)
    return 1 if findings or silent or lines else 0


def read_servers(path):
    """The servers of the table at `path`, which must be good and have addresses.  Raises Refusal."""
    try:
        table, problems = verdict.check_file(path)
    except rank_table.NotReadable as error:
        raise Refusal(2, str(error)) from error
    if errors(problems):
        raise Refusal(1, *(problem.line(path) for problem in errors(problems)))
    servers = rank_table.servers(table)
    if not servers:
        raise Refusal(1, f"{one_line(path)} has no server_list; tables of versions 1.0 and 1.2 can be checked")
    for server in servers:
        for device in server.devices:
            if device.device_ip is None:
                raise Refusal(1, f"{one_line(path)}: {device.pointer} has no device_ip; there is no network to check")
    return servers


def ask_hosts(options, servers):
    """({server_id: facts}, lines about hosts that did not answer) of all hosts of the hostfile."""
    # The table goes along as far as it is needed: the hosts need not have the file.
    needed = [[server.server_id, [list(device) for device in server.devices]] for server in servers]
    data = base64.b64encode(zlib.compress(json.dumps(needed).encode(), 9)).decode()
    try:
        _, answers, lines = ask.ask(options.hostfile, "check_network.py", [*["--ping"][: options.ping], data])
    except hostfile.HostfileError as error:
        raise Refusal(2, str(error)) from error
    except ask.ClusterError as error:
        raise Refusal(2, *error.lines) from error
    facts = {}
    for found in answers:
        if found.table:
            server_id, of_devices = found.table
            facts[server_id] = {int(device): answers_ for device, answers_ in of_devices.items()}
    return facts, lines


def kept(facts):
    """A line for each server with devices that had no detect address, which cannot be taken away again."""
    for server_id, devices in facts.items():
        new = [str(device) for device, found in sorted(devices.items()) if found.get("kept")]
        if new:
            text = "had no detect address before; hccn_tool cannot take it away, so it stays"
            yield f"{server_id}: device {','.join(new)} {text}"


# ---- on the host that is asked -------------------------------------------------------------------


def answer(options):
    """Prints what this host's cards say as a frame; the exit code is 0 either way, see cluster.py."""
    needed = json.loads(zlib.decompress(base64.b64decode(options.table)))
    servers = [
        rank_table.Server("", name, [rank_table.Device(*device) for device in devices]) for name, devices in needed
    ]
    entry, content, lines = ask.own_entry(options.hosts), None, []
    options.server_id = entry if entry in [server.server_id for server in servers] else None
    try:
        server = own_server(options, servers)
        content = [server.server_id, cards.ask(questions(servers, server, options.ping))]
    except Refusal as refusal:
        lines = refusal.lines
    os.write(1, ask.frame(ask.Answer(entry, socket.gethostname(), content, list(lines)), options.answer))
    return 0


def own_server(options, servers):
    """The server of the table that is this host, which has an hccn_tool.  Raises Refusal."""
    if not programs.on_path("hccn_tool"):
        raise Refusal(
            2, "hccn_tool is not on PATH, and only it can ask the cards; it is in /usr/local/Ascend/driver/tools"
        )
    if options.server_id:
        ours = [server for server in servers if server.server_id == options.server_id]
        if not ours:
            raise Refusal(2, f"--server_id {one_line(options.server_id)} is not in the table")
    else:
        ours = [server for server in servers if host.owns(server.server_id)]
    if len(ours) != 1:
        names = ", ".join(one_line(server.server_id) for server in (ours or servers)[:5])
        what = "several servers of the table are" if ours else "no server of the table is"
        raise Refusal(2, f"{what} this host ({names}); say which one with --server_id ID")
    return ours[0]


def questions(servers, server, ping):
    """The network.Questions for the devices of `server`."""
    partners = cards_judge.partners(servers)
    found = []
    for place, device in enumerate(server.devices):
        number = int(device.device_id)
        others = [other.devices for other in servers if other is not server] if ping else []
        pings = [devices[place % len(devices)].device_ip for devices in others]
        found.append(cards.Question(number, partners.get((server.server_id, number)), pings))
    return found


# ---- what the user sees --------------------------------------------------------------------------


def show(options, servers, facts, findings, silent):
    """Prints the matrix and the findings, or both as JSON."""
    if options.format == "json":
        print(json.dumps(document(servers, facts, findings, silent), indent=2, ensure_ascii=False))
        return
    sys.stdout.reconfigure(errors="backslashreplace")  # a server_id may have letters that the terminal has not
    matrix(servers, facts, findings, silent)
    for found in findings:
        code = f" [{found.code}]" if found.code else ""
        print(f"{found.server} device {found.device} (rank {found.rank}): {found.text}; {found.remedy}{code}")
    asked = sum(map(len, facts.values()))
    wrong = len({(found.server, found.device) for found in findings})
    print(f"{asked} devices asked on {len(facts)} of {len(servers)} servers, {wrong} with a problem")


def matrix(servers, facts, findings, silent):
    """A line a server, a column a device: ok, or what is wrong."""
    from hccl_tools.show import terminal

    wrong = {}
    for found in findings:
        wrong.setdefault((found.server, found.device), []).append(found.check)
    columns = sorted({int(device.device_id) for server in servers for device in server.devices})
    rows = []
    for server in servers:
        if server.server_id in facts:
            own = {int(device.device_id) for device in server.devices}
            cells = [
                " ".join(dict.fromkeys(wrong.get((server.server_id, column), ["ok"]))) if column in own else ""
                for column in columns
            ]
            rows.append(([server.server_id, *cells], False))
        elif server.server_id in silent:
            rows.append(([server.server_id, *("no answer" for _ in columns)], False))
    terminal.show_rows([("server", False), *((f"device {column}", False) for column in columns)], rows)


def document(servers, facts, findings, silent):
    """The whole result for other programs."""
    return {
        "ok": not findings and not silent,
        "servers": [
            {
                "server_id": server.server_id,
                "answered": server.server_id in facts,
                "devices": [
                    {"device_id": int(device.device_id), "rank_id": int(device.rank_id), "device_ip": device.device_ip}
                    | {
                        key: facts[server.server_id][int(device.device_id)][key]
                        for key in ("ip", "netmask", "link", "tls", "gateway", "health", "lost")
                    }
                    for device in server.devices
                ]
                if server.server_id in facts
                else [],
            }
            for server in servers
        ],
        "problems": [found._asdict() for found in findings],
    }


def say(message):
    """One line of the conversation, on stderr."""
    print(f"{PROGRAM}: {one_line(message)}", file=sys.stderr)
