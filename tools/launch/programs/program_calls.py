"""Finds what a program asks MindSpore for: the calls in its own file, which is parsed and not run."""

from __future__ import annotations

from hccl_tools.common.record import Row
from tools.launch.programs.sources import MOST_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator
    from re import Pattern


class Called(Row):
    """A call; sure: it depends on no condition."""

    node: ast.Call
    name: str  # of the function, without its module
    sure: bool

    def word(self, name: str) -> str:
        """The value of an argument as it is written: "auto_parallel" for ParallelMode.AUTO_PARALLEL; else empty."""
        return next((_word(argument.value) for argument in self.node.keywords if argument.arg == name), "")

    def first(self) -> str:
        """The same of the first argument that has no name."""
        return _word(self.node.args[0]) if self.node.args else ""


def text_of(path: str) -> bytes:
    """The beginning of the file; empty if it cannot be read: other checks report that."""
    try:
        with open(path, "rb") as file:
            return file.read(MOST_BYTES)
    except OSError:
        return b""


def read(path: str, worth: Pattern[bytes]) -> list[Called]:
    """The calls in a file with the pattern; none if Python cannot parse the file: Python reports that when it runs."""
    text = text_of(path)
    if not worth.search(text):
        return []
    import ast  # only such a program needs these
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python reports them, too, when it runs the program
            return list(_calls(ast.parse(text), sure=True))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _calls(node: ast.AST, sure: bool) -> Iterator[Called]:
    import ast

    if isinstance(node, ast.Call):
        yield Called(node, getattr(node.func, "attr", "") or getattr(node.func, "id", ""), sure)
    depends = isinstance(node, (ast.If, ast.IfExp, ast.Try, ast.For, ast.While))
    if isinstance(node, ast.If) and "__name__" in ast.dump(node.test):  # if __name__ == "__main__"
        depends = False
    for child in ast.iter_child_nodes(node):
        yield from _calls(child, sure and not depends)


def _word(node: ast.expr) -> str:
    attribute = getattr(node, "attr", "")
    value = attribute if attribute.isupper() else getattr(node, "value", "")
    return str(value).lower() if isinstance(value, (str, int)) else ""
