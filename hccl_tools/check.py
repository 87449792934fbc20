"""One verdict on a rank table: its structure by the schema, the rest by the rules."""

from hccl_tools import rank_table, rules, schema_check
from hccl_tools.problem import Problem, shown

# Formats that HCCL reads and this version of the tool does not; named, so that nobody hunts for a
# mistake in a good table.
_OTHER_VERSIONS = {"1.1": "heterogeneous", "1.2": "A3 super pod", "2.0": "Ascend 950"}


def check(table, generation=None):
    """Every Problem of a parsed table, sorted by place.

    generation: one of `rules.GENERATIONS`, whose own rules then apply too, or None for the rules
    that hold on every chip.
    """
    foreign = _foreign_format(table)
    if foreign:
        return [foreign]
    found = schema_check.problems(table, schema_check.load_schema("rank_table_v1.0"))
    if isinstance(table, dict):
        servers = rank_table.servers(table)
        for rule in rules.RULES + rules.GENERATION_RULES[generation]:
            found.extend(rule(table, servers))
    return sorted(set(found), key=_place)


def check_file(path, generation=None):
    """(document or None, problems) of the file `path`.  Raises rank_table.NotReadable."""
    table, found = rank_table.read(path)
    return table, found or check(table, generation)


def _place(problem):
    """Sorts /a/2 before /a/10, and a place before what is inside it."""
    parts = problem.pointer.split("/")
    place = [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]
    return place, problem


def _foreign_format(table):
    if not isinstance(table, dict):
        return None
    if "server_group_list" in table:
        return _unsupported("a MindIE global rank table, which HCCL itself cannot read")
    if "prefill_device_list" in table or "decode_device_list" in table:
        return _unsupported("an llm-datadist rank table, which HCCL itself cannot read")
    if "version" not in table and "group_list" in table:
        return _unsupported("a table of the legacy format with group_list")
    version = table.get("version")
    if isinstance(version, str) and version in _OTHER_VERSIONS:
        return _unsupported(f"a table of version {version} ({_OTHER_VERSIONS[version]})")
    if isinstance(version, str) and version != "1.0":
        return Problem("bad-version", "/version", f"version {shown(version)} is none that HCCL reads", 'write "1.0"')
    return None


def _unsupported(what):
    return Problem("unsupported-format", "", f"this is {what}", "this tool reads tables of version 1.0")
