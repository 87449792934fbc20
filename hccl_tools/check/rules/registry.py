"""How a rule declares itself, and which rules a table has to keep."""

from hccl_tools.common.problem import ERROR, Problem

GENERATIONS = ("910A", "A2", "A3", "950")

LISTED = ("v1.0", "v1.2", "cross_cluster")  # formats with server_list
LEGACY = ("legacy_lab", "legacy_cloud")
WITH_DEVICES = (*LISTED, *LEGACY)
ALL = (*WITH_DEVICES, "v1.1", "v2.0")

_rules = []


def rule(code, formats, severity=ERROR, generations=None):
    """Makes a function a rule.

    It takes a View and yields (pointer, text, remedy); the code and the severity are always the
    declared ones.  Its docstring is its documentation: what is wrong, "Why:" with the source, and
    "Mend:"; see explain.py.
    """

    def register(function):
        function.code, function.severity = code, severity
        function.formats, function.generations = formats, generations
        _rules.append(function)
        return function

    return register


def registered():
    """All rules of the modules that are imported."""
    return tuple(_rules)


def broken(view, generation):
    """The Problems of the rules that hold for the view's format on `generation` (or None)."""
    for each in _rules:
        if view.format in each.formats and (each.generations is None or generation in each.generations):
            for pointer, text, remedy in each(view):
                yield Problem(each.code, pointer, text, remedy, each.severity)
