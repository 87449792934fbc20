"""What people read in the code: comments, docstrings and messages of Python files, all text of bash files, and what
schemas say about their keys."""

import ast
import itertools
import json
import re

import documents
import language

# Python's own tokenizer takes ten times as long.
_STRING_OR_COMMENT = re.compile(
    r'''("""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')|(#.*?)$''',
    re.DOTALL | re.MULTILINE,
)
_SAID_BY_SCHEMA = re.compile(r'"(?:title|description)": ("(?:\\.|[^"\\])*")')
_SHELL_COMMENT = re.compile(r"(?:^|\s)#(?!!)\s?(.*)$")


def files(suffix, *folders):
    """The project's files in these folders, as paths from its root."""
    found = [path for folder in folders for path in (documents.ROOT / folder).rglob(f"*{suffix}")]
    return sorted(str(path.relative_to(documents.ROOT)) for path in found)


def problems(path, source):
    """path:line: what is wrong, for every forbidden word."""
    texts = _TEXTS[path.rpartition(".")[2]](source)
    told = [(line, " ".join(text.split())) for line, text in texts]
    words = language.occurring(text for _, text in told)
    for line, text in told:
        for found, instead in language.forbidden(text, words):
            yield f'{path}:{line}: "{found}"; write: {instead}'


def python_texts(source):
    """(line, text) of every block of comments and of every string; what an f-string fills in counts as CODE."""
    yield from _blocks((line, text.lstrip("#! ")) for line, text in comments(source))
    nodes = list(ast.walk(ast.parse(source)))
    filled = [node for node in nodes if isinstance(node, ast.JoinedStr)]
    for node in filled:
        yield node.lineno, "".join(part.value if isinstance(part, ast.Constant) else "CODE" for part in node.values)
    pieces = {piece for node in filled for piece in node.values}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in pieces:
            yield node.lineno, node.value


def comments(source):
    """(line, text) of the comments of a Python file."""
    for found in _STRING_OR_COMMENT.finditer(source):
        if found[2]:
            yield source.count("\n", 0, found.start()) + 1, found[2]


def shell_texts(source):
    """(line, text) of every block of comments, and of every line of code, whose strings need no parser."""
    lines = list(enumerate(source.splitlines(), 1))
    yield from _blocks((line, found[1]) for line, text in lines if (found := _SHELL_COMMENT.search(text)))
    yield from ((line, _SHELL_COMMENT.sub("", text)) for line, text in lines)


def schema_texts(source):
    """(line, text) of each title and description."""
    for found in _SAID_BY_SCHEMA.finditer(source):
        yield source.count("\n", 0, found.start()) + 1, json.loads(found[1])


_TEXTS = {"py": python_texts, "sh": shell_texts, "json": schema_texts}


def _blocks(comments):
    """(line, text): comments on successive lines are one text, since a sentence goes on from line to line."""
    for _, block in itertools.groupby(enumerate(comments), lambda each: each[1][0] - each[0]):
        lines = [comment for _, comment in block]
        yield lines[0][0], "\n".join(text for _, text in lines)
