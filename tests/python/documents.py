"""The project's documents as tests: their code blocks, what each is to do, and a world to run them in.

Directly before every code block of a page stands an HTML comment, the mark, that says what is to be done with it.
CONTRIBUTING.md lists the marks.  `blocks` reads them, `World` runs a page's blocks in a throw-away copy of the project,
`difference` compares what a block shows with what was printed.
"""

import atexit
import contextlib
import functools
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
_MARKDOWN = MarkdownIt("commonmark").enable("table")
_VERBS = ("not run", "output of hardware", "prints loosely", "prints", "file", "run")
_WORLDS = ("here", "npu", "stub", "lab")
_LANGUAGES = {"run": {"bash"}, "prints": {"text", "json", "yaml"}, "prints loosely": {"text", "json", "yaml"}}
_LIMIT = 300  # seconds for one block
_SLOW_LIMIT = 570


class BadMark(Exception):
    """A block without a mark, or with one that means nothing; the text says where and what."""


@dataclass
class Block:
    """One code block: where it stands, what is in it, and what its mark says of it."""

    page: str
    line: int  # of its first line of text
    language: str
    text: str
    verb: str = ""
    word: str = ""  # the name of a file, or a reason
    options: dict = field(default_factory=dict)

    @property
    def place(self):
        """page:line, as an editor opens it."""
        return f"{self.page}:{self.line}"


def pages():
    """The documents that the tests read, as paths from the project's folder."""
    names = [name for name in ("README.md", "README_CN.md", "CONTRIBUTING.md") if (ROOT / name).exists()]
    return names + sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))


def read(page):
    """The page's text."""
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page, text):
    """The blocks of a page in order; raises BadMark."""
    found, before = [], None
    for token in _MARKDOWN.parse(text):
        if token.type in ("fence", "code_block"):
            first = token.map[0] + (2 if token.type == "fence" else 1)
            block = Block(page, first, token.info.strip(), token.content)
            if token.type == "code_block":
                raise BadMark(f"{block.place}: a block by indentation; fence it, with a language and a mark")
            _mark(block, before)
            found.append(block)
        before = token
    _in_order(found)
    return found


def _mark(block, token):
    """Fills in what the comment before the block says; raises BadMark."""
    comment = re.fullmatch(r"<!-- (.*) -->", token.content.strip()) if token and token.type == "html_block" else None
    if not comment:
        raise BadMark(f"{block.place}: no mark such as <!-- run --> directly before this block")
    mark = comment[1].strip()
    verb = next((verb for verb in _VERBS if re.match(rf"{verb}\b", mark)), None)
    if not verb:
        raise BadMark(f"{block.place}: <!-- {mark} --> is no mark; marks are {', '.join(sorted(_VERBS))}")
    rest = mark[len(verb) :]
    block.verb, block.word = verb, rest.strip(" :")
    if verb == "run":
        block.word, block.options = "", _options(block, rest)
    elif verb in ("not run", "output of hardware") and not re.match(r": \S", rest):
        raise BadMark(f"{block.place}: the mark must say why: <!-- {verb}: REASON -->")
    elif verb == "file":
        _check_file(block)
    elif verb.startswith("prints") and block.word:
        raise BadMark(f"{block.place}: <!-- {verb} --> takes nothing more, and has {block.word}")
    if not block.language or block.language not in _LANGUAGES.get(verb, {block.language}):
        wanted = " or ".join(sorted(_LANGUAGES.get(verb, {"a language"})))
        raise BadMark(f"{block.place}: a block for {verb} is written in {wanted}, not {block.language or 'nothing'}")


def _options(block, text):
    """{"exit": 2, "on": "npu", ...} of a run mark; raises BadMark."""
    options = {"exit": 0, "on": "here", "slow": False, "do": "", "host": 0, "need": ""}
    for word in shlex.split(text):
        name, has_value, value = word.partition("=")
        if name not in options or (name == "slow") == bool(has_value):
            raise BadMark(f"{block.place}: {word} is no option of run")
        if isinstance(options[name], bool):
            options[name] = True
        elif isinstance(options[name], int):
            if not value.isdigit():
                raise BadMark(f"{block.place}: {word}: a number is expected")
            options[name] = int(value)
        else:
            options[name] = value
    if options["on"] not in _WORLDS:
        raise BadMark(f"{block.place}: on={options['on']} is none of {', '.join(_WORLDS)}")
    return options


def _check_file(block):
    name = Path(block.word)
    if not block.word or name.is_absolute() or ".." in name.parts or len(block.word.split()) > 1:
        raise BadMark(f"{block.place}: <!-- file NAME --> takes one name, from the project's folder")
    try:
        if name.suffix == ".json":
            json.loads(block.text)
        elif name.suffix in (".yaml", ".yml"):
            yaml.safe_load(block.text)
    except (ValueError, yaml.YAMLError) as error:
        raise BadMark(f"{block.place}: this is to be {block.word}: {error}") from None


def _in_order(found):
    """What is printed stands directly after what was run; raises BadMark."""
    for block, before in zip(found, [None, *found]):
        if block.verb.startswith("prints") and (before is None or before.verb != "run"):
            raise BadMark(f"{block.place}: <!-- {block.verb} --> has no <!-- run --> directly before it")


def same_in_chinese(block):
    """What must be the same in the Chinese page: comments in commands, and drawings, are prose."""
    text = block.text
    if block.language in ("bash", "yaml", "python"):
        text = re.sub(r"(?m)(^|\s+)#.*$", "", text)
    if block.verb == "not run" and block.language == "text":
        text = ""
    word = block.word if block.verb == "file" else ""
    return block.verb, word, block.options, block.language, [line for line in text.splitlines() if line.strip()]


# ---- comparing -------------------------------------------------------------------------------------

_PLAIN = [  # what differs from run to run, and what stands for it; in this order
    (r"\x1b\[[0-9;]*[A-Za-z]", ""),
    (r"-\d{8}T\d{6}Z-\d+", "-TIME-PID"),
    (r"\b\d{4}-\d\d-\d\d([T ]\d\d:\d\d:\d\d([.,]\d+)?Z?)?", "DATE"),
    (r"\b\d\d:\d\d:\d\d([.,]\d+)?", "TIME"),
    (r"\b\d+(\.\d+)? ?(ms|s|min|seconds|minutes)\b", "N s"),
    (r"(?i)\b(pid|process|processes)([ =:]+)\d+", r"\1\2PID"),
    (r"(?i)(port)([ =:\"]+)\d{4,5}\b", r"\1\2PORT"),
    (r"(\d+\.\d+\.\d+\.\d+|node\d+|localhost):\d{4,5}\b", r"\1:PORT"),
    (r"\b(?=[0-9a-f]*\d)[0-9a-f]{12,64}\b", "DIGEST"),
    (r"(?i)\b(sha-?256|digest)([ =:]+)[0-9a-f]{6,}\b", r"\1\2DIGEST"),
    (r"\b(loss(?: is|:)) [-+0-9.e]+", r"\1 N"),
    (r"(?i)\b(accuracy[^:\n]*|hmean[^:\n]*): \d+(\.\d+)?%", r"\1: N%"),
    (r"/tmp/[\w./-]+", "/tmp/NAME"),
    (r"[ \t]+", " "),
]


def plain(text):
    """Lines of `text` with times, process ids, dates, ports, digests and folders as fixed words, and single blanks."""
    for pattern, word in _PLAIN:
        text = re.sub(pattern, word, text)
    return [line.rstrip() for line in text.splitlines()]


def difference(block, output):
    """None if `output` is what the block shows, else where they part, in words."""
    expected, printed = plain(block.text), plain(output)
    if block.verb == "prints loosely":
        gaps = ["...", *(line for shown in expected for line in (shown, "..."))]
        missing = _first_missing([line for line in gaps if line.strip()], printed)
    else:
        missing = _first_missing(expected, printed)
    if missing is None:
        return None
    return f"{block.place}: {missing}\n--- what is printed, normalised:\n" + "\n".join(printed)


def _first_missing(expected, printed):
    """The first expected line that is not there, in words; "..." stands for any lines."""
    chunks = [[]]
    for line in expected:
        if line.strip() == "...":
            chunks.append([])
        else:
            chunks[-1].append(line)
    place = 0
    for number, chunk in enumerate(chunks):
        last = number == len(chunks) - 1
        starts = [place] if number == 0 else range(place, len(printed) - len(chunk) + 1)
        if last and number and chunk:
            starts = [len(printed) - len(chunk)] if len(printed) - len(chunk) >= place else []
        found = next((start for start in starts if printed[start : start + len(chunk)] == chunk), None)
        if found is None:
            return _words(chunk, printed, place, number == 0)
        place = found + len(chunk)
    if place < len(printed) and chunks[-1]:
        return f"more is printed than is shown, from: {printed[place]}"
    return None


def _words(chunk, printed, place, at_once):
    """What of `chunk` is not printed."""
    if at_once:
        for line, got in zip(chunk, [*printed[place:], *[None] * len(chunk)]):
            if line != got:
                return f"shown: {line}\nprinted: {'nothing more' if got is None else got}"
    for line in chunk:
        if line not in printed[place:]:
            return f"shown, and not printed from here on: {line}"
    return "these lines are not printed like this, one below the other:\n" + "\n".join(chunk)


# ---- running ---------------------------------------------------------------------------------------

_KEPT = ("PATH", "LANG", "LC_ALL", "TERM", "USER", "LOGNAME", "SHELL", "TZ")  # of whoever runs the tests


@functools.cache
def _shared_copy(folder):
    """A copy of a data set of thousands of files, one for all pages of this run."""
    base = tempfile.mkdtemp(prefix="docs.data.", dir="/tmp")
    atexit.register(shutil.rmtree, base)
    return shutil.copytree(folder, Path(base, folder.name), copy_function=shutil.copyfile)


class World:
    """A throw-away copy of the project in which one page's blocks are run, in order.

    For what is run there the home folder is /home/me and the project /home/me/project: what a user sees.
    """

    def __init__(self):
        self.base = tempfile.mkdtemp(prefix="docs.", dir="/tmp")
        self.home = Path(self.base, "home", "me")
        self.folder = self.home / "project"
        self.lab = None
        self._copy()
        self.train = (self.folder / "tools" / "train.py").read_bytes()

    def _copy(self):
        listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
        names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
        for name in names:
            source, target = ROOT / name, self.folder / name
            if name and source.is_file():  # not .venv, where that is a link
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)  # with its time: make must not begin to install
        (self.folder / "data").mkdir()
        for data in (ROOT / "data").glob("*/"):
            if sum(1 for _ in data.rglob("*")) < 100:
                shutil.copytree(data, self.folder / "data" / data.name, copy_function=shutil.copyfile)
            else:
                (self.folder / "data" / data.name).symlink_to(_shared_copy(data))
        venv = self.folder / ".venv"
        venv.mkdir()
        for name in ("bin", "lib", "lib64", "include", "pyvenv.cfg"):
            if (ROOT / ".venv" / name).exists():
                (venv / name).symlink_to((ROOT / ".venv" / name).resolve())
        (venv / "installed").touch()
        git = "git init -q && git add -A && git -c user.name=me -c user.email=me@example.org commit -qm copy"
        subprocess.run(["bash", "-c", git], cwd=self.folder, env=self._environment("here", ""), check=True)

    def _environment(self, world, do):
        env = {name: os.environ[name] for name in _KEPT if name in os.environ}
        programs = [str(self.folder / ".venv" / "bin")]
        env.update(
            HOME=str(self.home),
            LAUNCH_LOCKS=str(self.home / "locks"),
            DOCUMENTS_WORLD=self.base,  # a mark by which its processes are found
        )
        if world != "here":
            out = self.home / "out"
            out.mkdir(exist_ok=True)
            stub = str(self.folder / "tests" / "fixtures" / "stub_mindspore")
            env.update(STUB_OUT=str(out), PYTHONPATH=stub, STUB_DO=do, STUB_SCHEDULER_EXIT="0")
            with contextlib.suppress(FileExistsError):
                (self.folder / "data" / "mnist").symlink_to("digits")  # who has NPUs has MNIST
        if world == "npu":
            programs.insert(0, str(self.folder / "tests" / "fixtures" / "bin"))
            env.update(HCCN_SIM=str(self._cards()), NPU_SIM=str(self._cards()))
        env["PATH"] = os.pathsep.join([*programs, env["PATH"]])
        return env

    def _cards(self):
        """The folder that describes the simulated NPUs: eight, with the demo's addresses."""
        cards = self.home / "cards"
        if not cards.exists():
            cards.mkdir()
            shutil.copyfile(self.folder / "configs" / "demo_hccn.conf", cards / "hccn.conf")
            (cards / "devices").write_text("8\n")
            (cards / "pod").write_text("none\n")
        return cards

    def write(self, block):
        """What <!-- file NAME --> asks for."""
        path = self.folder / block.word
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
        if block.text.startswith("#!"):
            path.chmod(0o755)

    def run(self, block):
        """The exit code and all the output of a run block; skips the test where its world cannot be."""
        options = block.options
        if options["slow"] and os.environ.get("SLOW_TESTS") != "1":
            pytest.skip("takes long; SLOW_TESTS=1 runs it")
        for program in filter(None, options["need"].split(",")):
            if not shutil.which(program):
                pytest.skip(f"no {program} on this machine")
        env = self._environment(options["on"], options["do"])
        command = ["bash", "-e", "-c", block.text]
        if options["on"] == "lab":
            env["LAB"] = self._lab(env)
            command = ["bash", str(self.folder / "tests/lab/lab.sh"), "run", str(options["host"]), *command]
        with self._trainer(options["on"]):
            code, output = _run(command, self.folder, env, _SLOW_LIMIT if options["slow"] else _LIMIT)
        output = output.replace(self.base, "")
        return code, re.sub(rf"\b{re.escape(socket.gethostname())}\b", "myhost", output)

    @contextlib.contextmanager
    def _trainer(self, world):
        """In all worlds but `here` the stub stands where the trainer is."""
        if world == "here":
            yield
            return
        trainer = self.folder / "tools" / "train.py"
        shutil.copyfile(self.folder / "tests" / "fixtures" / "stub_trainer.py", trainer)
        try:
            yield
        finally:
            trainer.write_bytes(self.train)

    def _lab(self, env):
        """The folder of a lab of two hosts, made when it is first needed."""
        if self.lab is None:
            up = [str(self.folder / "tests/lab/lab.sh"), "up", "2", str(os.getpid())]
            done = subprocess.run(["bash", *up], env=env, cwd=self.folder, capture_output=True, text=True, timeout=60)
            if done.returncode and not os.environ.get("LAB_REQUIRED"):
                pytest.skip(done.stderr.strip())
            assert done.returncode == 0, done.stderr
            self.lab = done.stdout.strip()
        return self.lab

    def close(self):
        """Ends what still runs, and takes the copy away."""
        if self.lab:
            down = ["bash", str(self.folder / "tests/lab/lab.sh"), "down"]
            subprocess.run(down, env={**os.environ, "LAB": self.lab}, timeout=60, capture_output=True)
        mark = f"DOCUMENTS_WORLD={self.base}".encode()
        for process in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if mark in Path("/proc", process, "environ").read_bytes().split(b"\0"):
                    os.kill(int(process), signal.SIGKILL)
        shutil.rmtree(self.base)


def _run(command, folder, env, limit):
    """Exit code and output of a command that is ended, with its group, after `limit` seconds."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            output += f"\n(ended after {limit} s)\n".encode()
    return process.returncode, output.decode(errors="replace")


# ---- links -----------------------------------------------------------------------------------------


def links(text):
    """(line, address) of every link and picture of a page."""
    for token in _MARKDOWN.parse(text):
        line = token.map[0] + 1 if token.map else 0
        if token.type == "html_block":
            yield from ((line, address) for address in re.findall(r'\b(?:href|src)="([^"]+)"', token.content))
        for child in token.children or ():
            address = child.attrGet("href") or child.attrGet("src")
            if address:
                yield line, unquote(address)
            if child.type == "html_inline":
                yield from ((line, address) for address in re.findall(r'\b(?:href|src)="([^"]+)"', child.content))


def anchors(text):
    """The names that #name can lead to in a page, made of its headings as code hosts make them."""
    found, before = set(re.findall(r'<a (?:id|name)="([^"]+)"', text)), None
    for token in _MARKDOWN.parse(text):
        if before == "heading_open":
            words = "".join(child.content for child in token.children if child.type in ("text", "code_inline"))
            name = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
            number, unique = 0, name
            while unique in found:
                number += 1
                unique = f"{name}-{number}"
            found.add(unique)
        before = token.type
    return found


def broken_link(page, address, files):
    """What is wrong with a link in `page`, or None; files: the paths of the project."""
    if re.match(r"[a-z]+:", address):
        return None
    path, _, anchor = address.partition("#")
    target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
    if target not in files and not any(name.startswith(target + "/") for name in files):
        return f"{target} does not exist"
    if anchor and anchor not in anchors(read(target)):
        return f"{target} has no heading #{anchor}"
    return None
