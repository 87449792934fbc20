"""Checks the English of the documents: forbidden words, long sentences, and how long the sentences of a page are.

  python tests/project/language.py [PAGE...]   prints what is wrong, then a table of words per sentence

What help and known failures say is in the pages that are generated from them, so those texts are read, too.
"""

import re
import statistics
import sys

import documents
import yaml
from markdown_it import MarkdownIt

LONGEST = 25  # words of a sentence
_MARKDOWN = MarkdownIt("commonmark").enable("table")
_FORBIDDEN = [
    (re.compile(entry["forbidden"], re.IGNORECASE), entry["instead"])
    for entry in yaml.safe_load((documents.ROOT / "tests/project/language.yaml").read_text(encoding="utf-8"))
]
# A sentence ends before white space and something that begins one; i.e. and e.g. end none.
_END = re.compile(r"(?<!\be\.g\.)(?<!\bi\.e\.)(?<=[.!?])[)\"”]*\s+(?=[\"“(]*(?:[A-Z0-9]|CODE))")


def pages():
    """The English pages."""
    return [page for page in [*documents.pages(), "CHANGELOG.md"] if not documents.is_chinese(page)]


def problems(page, text, kinds=("prose", "table", "output")):
    """page:line: what is wrong, for every forbidden word and every sentence that is too long."""
    passages = [each for each in _passages(text) if each[1] in kinds]
    words = occurring(passage for _, _, passage in passages)
    for line, kind, passage in passages:
        for found, instead in forbidden(passage, words):
            yield f'{page}:{line}: "{found}"; write: {instead}'
        if kind == "prose":
            for sentence in _sentences(passage):
                if len(_words(sentence)) > LONGEST:
                    yield f"{page}:{line}: {len(_words(sentence))} words, {LONGEST} are enough: {sentence}"


def occurring(texts):
    """The forbidden words that are in any of the texts; few are, so no text need be searched for all of them."""
    joined = "\n".join(texts)
    return [(pattern, instead) for pattern, instead in _FORBIDDEN if pattern.search(joined)]


def forbidden(text, words):
    """(words found, what to write instead) for every place of the text."""
    return [(found[0], instead) for pattern, instead in words for found in pattern.finditer(text)]


def lengths(text):
    """The numbers of words of a page's sentences."""
    found = [sentence for _, kind, passage in _passages(text) if kind == "prose" for sentence in _sentences(passage)]
    return [len(_words(sentence)) for sentence in found]


def figures(text):
    """(sentences, median, 95 % of them have at most, longest), as numbers of words."""
    found = sorted(lengths(text)) or [0]
    return len(found), statistics.median_high(found), found[max(0, -(-len(found) * 95 // 100) - 1)], found[-1]


def _passages(text):
    """(line, kind, text) of all that people read: kind is prose, table, or output for what a command prints."""
    in_table, mark, line = False, "", 0
    for token in _MARKDOWN.parse(text):
        line = token.map[0] + 1 if token.map else line
        in_table = in_table != (token.type in ("table_open", "table_close"))
        if token.type == "inline":
            yield line, "table" if in_table else "prose", _plain(token.children)
            yield from ((line, "prose", child.content) for child in token.children if child.type == "image")
        elif token.type == "fence" and mark.startswith("<!-- prints"):
            yield line, "output", token.content
        mark = token.content if token.type == "html_block" else ""


def _plain(children):
    """The words of a paragraph; a piece of code counts as one."""
    parts = {"text": lambda child: child.content, "code_inline": lambda child: "CODE"}
    return "".join(
        parts.get(child.type, lambda child: " " if "break" in child.type else "")(child) for child in children
    )


def _sentences(passage):
    return [sentence.strip() for sentence in _END.split(passage) if sentence.strip()]


def _words(sentence):
    return [word for word in sentence.split() if re.search(r"\w", word)]


def main(chosen):
    shown = chosen or pages()
    found = [problem for page in shown for problem in problems(page, documents.read(page))]
    print(*found, sep="\n")
    print("\nwords per sentence: sentences, median, 95 %, longest")
    for page in shown:
        print(f"{page:<32}" + "".join(f"{number:>6}" for number in figures(documents.read(page))))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
