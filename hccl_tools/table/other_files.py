"""Identifies files that are not JSON and that people pass instead of a rank table, and names what each one is."""

from __future__ import annotations

import re

from hccl_tools.common.language import marked, tr
from hccl_tools.common.record import Row
from hccl_tools.table.look_alikes import BUILD, FROM_CONFIGMAP

_HEAD = 1 << 16  # bytes of a file that are looked at
_MOST_LINES = 200  # of these
_YAML_SHARE = 0.8  # of the lines at the margin of YAML have a key

_UNPACK = marked("unpack it, and name the rank table that is in it")
_NAME = marked("name the file of the rank table")
_AGAIN = marked("copy the file again")
_TO_JSON = marked(
    "write it as JSON: "
    "python -c 'import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)' <FILE >hccl.json"
)
_OF_SHELL = marked("if it names the table (RANK_TABLE_FILE=...), name that file")

# first bytes -> what the file is, and what to do
_BINARY = (
    (b"\x1f\x8b", marked("a file compressed by gzip"), _UNPACK),
    (b"PK\x03\x04", marked("a zip archive"), _UNPACK),
    (b"BZh", marked("a file compressed by bzip2"), _UNPACK),
    (b"\xfd7zXZ\0", marked("a file compressed by xz"), _UNPACK),
    (b"\x28\xb5\x2f\xfd", marked("a file compressed by zstd"), _UNPACK),
    (b"\x04\x22\x4d\x18", marked("a file compressed by lz4"), _UNPACK),
    (b"7z\xbc\xaf\x27\x1c", marked("a 7z archive"), _UNPACK),
    (b"Rar!", marked("a rar archive"), _UNPACK),
    (b"\xff\xfe", marked("text in UTF-16"), marked("save the file as UTF-8")),
    (b"\xfe\xff", marked("text in UTF-16"), marked("save the file as UTF-8")),
    (b"%PDF", marked("a PDF"), _NAME),
    (b"\x89PNG", marked("an image"), _NAME),
    (b"\xff\xd8\xff", marked("an image"), _NAME),
    (b"\x7fELF", marked("a program"), _NAME),
    (b"\x89HDF", marked("an HDF5 file"), _NAME),
    (b"\x80\x04", marked("a pickled Python object"), _NAME),
    (b"SQLite format", marked("a database"), _NAME),
)


class _Text(Row):
    """A kind of text file: a pattern, how many of the lines fit it (0: the beginning does), what it is, what to do."""

    pattern: re.Pattern[str]
    share: float
    what: str
    remedy: str

    def fits(self, start: str, lines: list[str]) -> bool:
        """Whether a text with this start and these lines is of the kind."""
        if not self.share:
            return self.pattern.match(start) is not None
        match = self.pattern.fullmatch if self.share == 1 else self.pattern.match
        return bool(lines) and sum(match(line.strip()) is not None for line in lines) >= self.share * len(lines)


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


_TEXTS = (
    _Text(_pattern(r"<(!doctype )?html|<head"), 0, marked("an HTML page"), marked("download the file itself")),
    _Text(_pattern(r"<\?xml"), 0, marked("an XML file"), _NAME),
    _Text(_pattern(r"version https://git-lfs"), 0,
          marked("a pointer of Git LFS"), marked("get the file: git lfs pull")),
    _Text(_pattern(r"(404|not found|error from server|access denied|permission denied|\S+: no such file)"), 0,
          marked("an error message"), _AGAIN),
    _Text(_pattern(r"#!.*python|(import|from) \w+|def \w+\("), 0, marked("a Python program"), _NAME),
    _Text(_pattern(r"#!"), 0, marked("a script"), _OF_SHELL),
    _Text(_pattern(r"\+-+\+?\s*\n\|\s*npu-smi|\s*(NPU ID|Total Count)\s*(:|Chip ID)"), 0,
          marked("what npu-smi prints"), BUILD),
    _Text(_pattern(r"(ipaddr|netmask) *:"), 0, marked("what hccn_tool prints"), BUILD),
    _Text(_pattern(r"\[(ERROR|WARNING|INFO|EVENT|DEBUG|TRACE)\]"), 0.3, marked("a log"), _NAME),
    _Text(_pattern(r"(IPv6)?(address|netmask|netdetect|gateway|send_arp_status|arp|tls_enable|mtu)_\d+ *="), 0.5,
          marked("an hccn.conf: the addresses of a host's devices"),
          marked("build the table from it: python hccl_tools/hccl_tools.py --hccn_conf FILE")),
    _Text(_pattern(r"(export +)?\w+=\S*"), 0.6, marked("a file of environment variables"), _OF_SHELL),
    _Text(_pattern(r"([\w.-]+@)?[\w-]+(\.[\w-]+)*((:\d+)|\s+(slots|max_slots|max-slots)\s*=\s*\d+|\s+spare)*"), 1,
          marked("a hostfile"),
          marked("it is for --hostfile: hccl_tools.py --hostfile FILE builds the rank table of its hosts")),
    _Text(_pattern(r"\[[\w .-]+\] *\n"), 0, marked("an INI file"), _NAME),
)  # fmt: skip

# keys at the margin of YAML -> what it is, and what to do
_YAML = (
    ({"apiVersion", "kind"}, marked("YAML of Kubernetes"), FROM_CONFIGMAP),
    ({"server_list"}, marked("a rank table in YAML"), _TO_JSON),
    ({"rank_list"}, marked("a rank table in YAML"), _TO_JSON),
    ({"group_list"}, marked("a rank table in YAML"), _TO_JSON),
    ({"system"}, marked("a training config"), marked("it is the script's CONFIG; name the rank table here")),
    ({"model"}, marked("a training config"), marked("it is the script's CONFIG; name the rank table here")),
    ({"train"}, marked("a training config"), marked("it is the script's CONFIG; name the rank table here")),
)  # fmt: skip


def named(data: bytes) -> tuple[str, str] | None:
    """(what the file is, what to do) for bytes that are not JSON; None for what is nearly JSON, or unknown."""
    head = data[:_HEAD]
    for start, what, remedy in _BINARY:
        if head.startswith(start):
            return tr(what), tr(remedy)
    if head[257:262] == b"ustar":
        return tr("a tar archive"), tr(_UNPACK)
    if not head.strip(b"\0"):
        return tr("a file with only NUL bytes, as after a full disk"), tr(_AGAIN)
    if b"\0" in head:
        return tr("a binary file"), tr(_NAME)
    return _of_text(head.decode("utf-8", "replace").lstrip("\ufeff"))


def _of_text(text: str) -> tuple[str, str] | None:
    start = text.lstrip()
    if start[:1] in '{"' or start.startswith(("//", "/*")) or re.match(r"\[(?![A-Za-z])", start):
        return None
    lines = [line.partition("#")[0] for line in text.splitlines()[:_MOST_LINES]]
    lines = [line for line in lines if line.strip()]
    if start.startswith("```"):
        return tr("Markdown: there is a line of ``` before the table"), tr("delete the lines with ```")
    if re.match(r"(<<<<<<<|=======|>>>>>>>)", start):
        return tr("a file with conflicts that git has left"), tr("keep one of the two parts")
    margin = [line for line in lines if not line.startswith((" ", "\t", "-"))]
    keys = {match[1] for line in margin if (match := re.match(r"([A-Za-z_][\w-]*):(\s|$)", line))}
    is_yaml = len(keys) >= _YAML_SHARE * len(margin)
    for wanted, what, remedy in _YAML:
        if is_yaml and wanted <= keys:
            return tr(what), tr(remedy)
    for kind in _TEXTS:
        if kind.fits(start, lines):
            return tr(kind.what), tr(kind.remedy)
    return (tr("YAML"), tr(_NAME)) if is_yaml and len(keys) > 1 else None
