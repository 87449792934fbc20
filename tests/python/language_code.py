"""What people read in the code: comments, docstrings and messages of Python files, all text of bash files."""

import ast
import io
import itertools
import re
import tokenize

import documents
import language

# In bash: a block of comment lines, the words of a quoted string, or of a here-document's line.
_SHELL_COMMENT = re.compile(r"(?:^|\s)#(?!!)\s?(.*)$")


def files(suffix, *folders):
    """The project's files in these folders, as paths from its root."""
    found = [path for folder in folders for path in (documents.ROOT / folder).rglob(f"*{suffix}")]
    return sorted(str(path.relative_to(documents.ROOT)) for path in found)


def problems(path):
    """path:line: what is wrong, for every forbidden word."""
    read = python_texts if path.endswith(".py") else shell_texts
    for line, text in read(documents.read(path)):
        for found, instead in language.forbidden(text):
            yield f'{path}:{line}: "{found}"; write: {instead}'


def python_texts(source):
    """(line, text) of every block of comments and of every string; what an f-string fills in counts as CODE."""
    comments = [
        token for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type == tokenize.COMMENT
    ]
    yield from _blocks((token.start[0], token.string.lstrip("#! ")) for token in comments)
    tree = ast.parse(source)
    inside = {part for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "CODE" for part in node.values]
            yield node.lineno, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inside:
            yield node.lineno, node.value


def shell_texts(source):
    """(line, text) of every block of comments, and every line of code as it is: its strings are the words in it."""
    lines = list(enumerate(source.splitlines(), 1))
    yield from _blocks((line, found[1]) for line, text in lines if (found := _SHELL_COMMENT.search(text)))
    yield from ((line, _SHELL_COMMENT.sub("", text)) for line, text in lines)


def _blocks(numbered):
    """Comments on successive lines are one text, since a sentence goes on from line to line."""
    for _, block in itertools.groupby(enumerate(numbered), lambda pair: pair[1][0] - pair[0]):
        lines = [comment for _, comment in block]
        yield lines[0][0], "\n".join(text for _, text in lines)
