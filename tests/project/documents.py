"""The project's documents as tests: their code blocks, what each must do, and their links.

An HTML comment directly before every code block of a page, the mark, tells the test what to do with the block.
CONTRIBUTING.md lists the marks.  `documents_world` runs a page's blocks, `documents_output` compares and updates them.

To bring the outputs that pages show up to date, in English and Chinese:

  python tests/project/documents.py --update PAGE...

SLOW_TESTS=1 includes the blocks that take minutes.  Exit: 0 pages are up to date, 1 something is left to do by hand,
2 usage error.
"""

import argparse
import functools
import json
import os
import re
import shlex
import sys
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

import documents_output
import pytest
import yaml
from documents_world import ROOT, WORLDS, World
from markdown_it import MarkdownIt

_MARKDOWN = MarkdownIt("commonmark").enable("table")
_VERBS = ("not run", "output of hardware", "prints loosely", "prints", "file", "from", "run")
_LANGUAGES = {"run": {"bash"}, "prints": {"text", "json", "yaml"}, "prints loosely": {"text", "json", "yaml"}}


class BadMark(Exception):
    """A block without a mark, or with one that means nothing; the text says where and what."""


@dataclass
class Block:
    """One code block: where it is, what is in it, and what its mark says about it."""

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
    in_folders = sorted(path for folder in ("docs", "examples") for path in (ROOT / folder).rglob("*.md"))
    return names + [str(path.relative_to(ROOT)) for path in in_folders]


def is_chinese(page):
    """Whether a page is in Chinese, by its name."""
    return page.startswith("docs/zh/") or page.endswith("README_CN.md")


def in_chinese(page):
    """The Chinese page that belongs to an English one."""
    return page.replace("README.md", "README_CN.md") if "README" in page else page.replace("docs/", "docs/zh/")


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
        raise BadMark(f"{block.place}: <!-- {mark} --> is not a mark; marks are {', '.join(sorted(_VERBS))}")
    rest = mark[len(verb) :]
    block.verb, block.word = verb, rest.strip(" :")
    if verb == "run":
        block.word, block.options = "", _options(block, rest)
    elif verb in ("not run", "output of hardware") and not re.match(r": \S", rest):
        raise BadMark(f"{block.place}: the mark must say why: <!-- {verb}: REASON -->")
    elif verb == "file":
        _check_file(block)
    elif verb == "from":
        _check_listing(block)
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
            raise BadMark(f"{block.place}: {word} is not an option of run")
        if isinstance(options[name], bool):
            options[name] = True
        elif isinstance(options[name], int):
            if not value.isdigit():
                raise BadMark(f"{block.place}: {word}: a number is expected")
            options[name] = int(value)
        else:
            options[name] = value
    if options["on"] not in WORLDS:
        raise BadMark(f"{block.place}: on={options['on']} is none of {', '.join(WORLDS)}")
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
        raise BadMark(f"{block.place}: this must be {block.word}: {error}") from None


def _check_listing(block):
    """The block is a file of the project, or some lines of one that follow each other."""
    if not re.fullmatch(r"\w[\w./-]*", block.word) or not (ROOT / block.word).is_file():
        raise BadMark(f"{block.place}: <!-- from NAME --> takes the name of a file of the project, not {block.word!r}")
    if "\n" + block.text not in "\n" + read(block.word):
        raise BadMark(f"{block.place}: these lines are not in {block.word}; take them from there again")


def _in_order(found):
    """Raises BadMark if what is printed is not directly after what was run."""
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
    word = block.word if block.verb in ("file", "from") else ""
    return block.verb, word, block.options, block.language, [line for line in text.splitlines() if line.strip()]


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


@functools.cache
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


# ---- updating --------------------------------------------------------------------------------------


def with_new_listings(text):
    """The page with its listings of whole files taken anew: those that begin as their file does."""

    def taken(match):
        now = read(match[2])
        return match[1] + (now if match[3].partition("\n")[0] == now.partition("\n")[0] else match[3]) + "```"

    return re.sub(r"(?s)(<!-- from (\S+) -->\n```\w+\n)(.*?)```", taken, text)


def update(page):
    """Runs the page's blocks, and writes what they print into it and into its Chinese page; False if work is left."""
    done, times, texts = True, {}, {}
    for name in {page, in_chinese(page)}:
        if (ROOT / name).exists() and with_new_listings(read(name)) != read(name):
            print(f"{name}: listings updated")
            (ROOT / name).write_text(with_new_listings(read(name)), encoding="utf-8")
    found = blocks(page, read(page))
    with closing(World()) as world:
        for number, block in enumerate(found):
            try:
                problem = world.play(block)
            except pytest.skip.Exception as skipped:
                print(f"{block.place}: not run: {skipped}")
                continue
            if problem and block.verb.startswith("prints"):
                texts[number] = documents_output.updated(block, world.output, times)
                problem = problem if texts[number] is None else None
            if problem:
                done = False
                print(f"{problem}\n--- left as it is", flush=True)
    write(page, found, [texts.get(number) for number in range(len(found))])
    chinese = in_chinese(page)
    if chinese != page and (ROOT / chinese).exists():
        copies, originals = blocks(chinese, read(chinese)), blocks(page, read(page))
        if [block.verb for block in copies] != [block.verb for block in originals]:
            print(f"{chinese}: its blocks are not those of {page}; left as it is")
            return False
        write(chinese, copies, [one.text if one.verb.startswith("prints") else None for one in originals])
    return done


def write(page, found, texts):
    """Replaces the text of the blocks for which there is another one."""
    before = read(page)
    lines = before.splitlines(keepends=True)
    for block, text in reversed(list(zip(found, texts))):
        if text is not None and text != block.text:
            print(f"{block.place}: updated")
            start = block.line - 1
            blank = re.match(" *", lines[start - 1])[0]  # a block in a list is indented
            new = [blank + line if line.strip() else line for line in text.splitlines(keepends=True)]
            lines[start : start + len(block.text.splitlines())] = new
    if "".join(lines) != before:
        beside = ROOT / f"{page}.{os.getpid()}"
        beside.write_text("".join(lines), encoding="utf-8")
        beside.replace(ROOT / page)


def main(arguments):
    parser = argparse.ArgumentParser(description="Brings the outputs that pages show up to date.")
    parser.add_argument("--update", nargs="+", required=True, metavar="PAGE", help="English pages, such as README.md")
    named = [os.path.relpath(page, ROOT) for page in parser.parse_args(arguments).update]
    unknown = [page for page in named if page not in pages() or is_chinese(page)]
    if unknown:
        parser.error(f"no English page: {', '.join(unknown)}")
    return 0 if all([update(page) for page in named]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
