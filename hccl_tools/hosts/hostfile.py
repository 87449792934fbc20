"""Reads lists of hosts: files in Open MPI's syntax (one host per line, slots=N, comments), and HOST:8,HOST:8.

    # the training cluster
    10.0.0.1 slots=8
    node2    slots=8 max_slots=8
    node3    slots=8 spare
    node[004-128]:8

The word `spare` is ours: such a host gets ranks when another one is lost.  Programs write such lists, too.  So we also
read clear forms that Open MPI does not understand: a byte-order mark, Windows line ends, HOST:8 as in MPICH, Slurm's
host sets, surplus commas and blanks, a comma before slots=N.  `Hosts.plain` states whether Open MPI reads the file as
we do.  Some lines Open MPI accepts silently, but then runs on the wrong hosts or not at all.  These lines are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hccl_tools.common import nearly
from hccl_tools.common.language import strerror, tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.record import Record, Row
from hccl_tools.common.refusal import USAGE, Refusal
from hccl_tools.common.words import one_line
from hccl_tools.hosts import node_sets
from hccl_tools.table.address import family

_NAME = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_COUNTS = ("slots", "count", "cpu")  # Open MPI's names for the number of slots
_KEYS = (*_COUNTS, "max_slots", "max-slots", "slots_max", "slots-max")
SPARE = "spare"
MAX_BYTES = 1 << 24  # 16 MiB: half a million hosts; more is another file
MAX_HOSTS = 1 << 20  # of a list with sets


class Host(Row):
    """A host of a list."""

    login: str  # [user@]host, as ssh takes it
    slots: int | None  # None: the list does not state it
    spare: bool = False
    written: bool = False  # slots is what the list has, and not a count of its lines

    @property
    def name(self) -> str:
        """Its name or address without the user."""
        return self.login.rpartition("@")[2]


class Hosts(Record):
    """The hosts of a file, in its order, each once."""

    hosts: list[Host]
    plain: bool  # Open MPI reads the file as we do, and it has the slots of every host


class HostfileError(Refusal):
    """The file has no usable list of hosts: the line names the file, the line and what to write."""

    def __init__(self, line: str) -> None:
        super().__init__(USAGE, line)


def read(path: str) -> Hosts:
    """The hosts of the file.  Raises HostfileError."""
    return parse(_content(path), one_line(path))


def logins(path: str) -> dict[str, str]:
    """{host: [user@]host, as ssh takes it} of the file `path`, in its order.  Raises HostfileError."""
    return {host.name: host.login for host in read(path).hosts}


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        text = tr("{path} cannot be read: {reason}; name the hosts' file", path=one_line(path), reason=strerror(error))
        raise HostfileError(text + nearly.question(path)) from error
    if len(data) > MAX_BYTES:
        raise HostfileError(
            tr(
                "{path} has more than {limit} bytes; a hostfile has one line per host",
                path=one_line(path),
                limit=MAX_BYTES,
            )
        )
    return data


def parse(data: bytes, name: str) -> Hosts:
    """The hosts in the bytes of a file, which messages call `name`.  Raises HostfileError."""
    text = _text(data, name)
    plain = "\r" not in text and not data.startswith(_MARKS)
    found: dict[str, Host] = {}
    lines: dict[str, int] = {}  # of the hosts, by their names in small letters
    room = MAX_HOSTS
    for number, line in enumerate(text.splitlines(), 1):
        written = line.partition("#")[0]
        plain = plain and "," not in written
        for words in _parts(written):
            try:
                hosts = list(_hosts(words))
            except ValueError as fault:
                raise HostfileError(f"{name}:{number}: {fault}") from fault
            plain = plain and [host.login for host in hosts] == words[:1]
            room -= len(hosts)
            if room < 0:
                text = tr("more than {most} hosts; name each once", most=MAX_HOSTS)
                raise HostfileError(f"{name}:{number}: {text}")
            for host in hosts:
                key = host.name.lower()
                if key in lines:
                    host = _again(host, found.get(key), f"{name}:{number}", lines[key])
                plain = plain and host.written and not host.spare
                lines.setdefault(key, number)
                found[key] = host
    if not found:
        raise HostfileError(
            tr("{name}: there is no host in it; write one per line, such as: 10.0.0.1 slots=8", name=name)
        )
    return Hosts(hosts=list(found.values()), plain=plain)


def _again(host: Host, before: Host | None, where: str, first: int) -> Host:
    """The host that is in a file once more.  Open MPI adds up lines without a number of slots, and takes no others."""
    if before is None or host.login != before.login or host.written or before.written or host.spare != before.spare:
        raise HostfileError(
            tr(
                "{where}: {host} is in line {first} too; give each host once, with all slots",
                where=where,
                host=one_line(host.name),
                first=first,
            )
        )
    return host._replace(slots=(before.slots or 1) + 1)


def parse_words(text: str) -> list[Host]:
    """The hosts of a text such as HOST:8,HOST:8.

    A host without a number has one slot, and one that comes again has more, as Open MPI counts; `slots` is None where
    it comes once, without a number.  Raises ValueError: what is wrong.
    """
    found: dict[str, Host] = {}
    for words in _parts(text):
        for host in _hosts(words, several=True):
            before = found.get(host.login)
            if before:
                host = host._replace(slots=(before.slots or 1) + (host.slots or 1))
            found[host.login] = host
    if not found:
        raise ValueError(tr("there is no host in it; write HOST:8,HOST:8"))
    return list(found.values())


_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")  # byte-order marks of UTF-8 and UTF-16


def _text(data: bytes, name: str) -> str:
    """The text of a file."""
    encoding = "utf-16" if data.startswith(_MARKS[1:]) else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise HostfileError(
            tr("{name}: byte {number} is not UTF-8; save the file as plain text", name=name, number=error.start + 1)
        ) from error


def _parts(text: str) -> list[list[str]]:
    """The words of each host or set: commas and ends of lines separate them.  A key and its value are one word."""
    text = "=".join(map(str.strip, text.split("=")))  # an expression would try each run of blanks from each blank on
    text = re.sub(r"\[[^\[\]]*\]", lambda found: "".join(found.group().split()), text)
    found: list[list[str]] = []
    for words in map(str.split, node_sets.split(text)):
        if found and words[0].partition("=")[0] in _KEYS and "=" in words[0]:  # of the host before the comma
            found[-1] += words
        else:
            found.append(words)
    return found


def _hosts(words: Sequence[str], several: bool = False) -> Iterator[Host]:
    """The hosts of one part: a host or a set of them, and what holds for it.

    several: another host may follow.  Raises ValueError: what is wrong.
    """
    starts = [0]
    if several:
        starts += (at for at, word in enumerate(words) if at and "=" not in word and word != SPARE)
    for start, end in zip(starts, [*starts[1:], len(words)]):
        names, count = _expanded(words[start])
        keys = words[start + 1 : end]
        for fault in filter(None, map(_fault_of_key, keys)):
            raise ValueError(fault)
        counts = [int(value) for key, _, value in (word.partition("=") for word in keys) if key in _COUNTS]
        count = counts[0] if counts else count
        for name in names:
            yield Host(name, count, SPARE in keys, count is not None)


def _expanded(word: str) -> tuple[list[str], int | None]:
    """([user@]host of all hosts of the word, the number of slots after its colon).  Raises ValueError."""
    name, colon, number = word.rpartition(":") if family(word.strip("[]")) is None else (word, "", "")
    names = node_sets.expand(name if colon else word)
    for fault in filter(None, map(fault_of_host, names)):
        raise ValueError(fault)
    count = whole_number(number, 1, node_sets.MOST) if colon else None
    if colon and count is None:
        raise ValueError(
            tr(
                "{word} has no number of ranks from 1 to {most}; write HOST:8,HOST:8",
                word=one_line(word),
                most=node_sets.MOST,
            )
        )
    return names, count


def fault_of_host(host: str) -> str | None:
    """What is wrong with the name or address of a host; None if it is valid."""
    shown = one_line(host)
    if family(host.strip("[]")) == family("::1"):
        return tr(
            "{shown} is an IPv6 address, which Open MPI does not accept in a list of hosts; write the host's name",
            shown=shown,
        )
    if ":" in host:
        return tr(
            "{shown}: number of slots after a colon; write {host} slots=N",
            shown=shown,
            host=shown.partition(":")[0],
        )
    if host.partition("=")[0] in _KEYS:
        return tr("{shown}: the host is missing before it; write it first, such as: 10.0.0.1 {shown}", shown=shown)
    if not _NAME.fullmatch(host):
        return tr("{shown} is neither a host's name nor an IPv4 address; write one host per line", shown=shown)
    last = host.rpartition("@")[2]
    if set(last) <= set("0123456789.") and family(last) is None:
        return tr("{shown} is not an IPv4 address; it has four numbers from 0 to 255", shown=shown)
    return None


def _fault_of_key(word: str) -> str | None:
    key, equals, value = word.partition("=")
    shown = one_line(word)
    if word == SPARE:
        return None
    if key.lower().startswith(SPARE):
        return tr("{shown}: no such word; for a spare host write the word {spare} alone", shown=shown, spare=SPARE)
    if not equals:
        return tr("{shown}: only slots=N can follow a host; give each host a line of its own", shown=shown)
    if key not in _KEYS:
        return tr("{shown}: no such key; write slots=N", shown=shown)
    if not re.fullmatch("[0-9]{1,6}", value):
        return tr("{shown}: the number of slots is not a number; write slots=8", shown=shown)
    if int(value) == 0:
        return tr("{shown}: a host without slots runs nothing; write slots=8, or take the line out", shown=shown)
    return None
