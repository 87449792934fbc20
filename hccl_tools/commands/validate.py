"""Checks rank tables: structure by the JSON Schema, then the rules that HCCL has on top of it.

One line a problem on stdout: file and line, JSON pointer, what is wrong, how to mend it, its code.

  python hccl_tools/validate_hccl.py hccl_8p_01234567_127.0.0.1.json
  python hccl_tools/validate_hccl.py --generation 910A *.json
  python hccl_tools/validate_hccl.py --against-host /user/config/rank_table.json
  python hccl_tools/validate_hccl.py --format json - <table.json
  python hccl_tools/validate_hccl.py --explain rank-gap

Exit: 0 all tables are good, 1 at least one is bad, 2 usage, or a file that cannot be read.
"""

import argparse
import os
import sys

from hccl_tools.check import rules, verdict
from hccl_tools.common.problem import errors
from hccl_tools.common.words import one_line
from hccl_tools.machine import hccn, host, interpreter
from hccl_tools.table import formats, rank_table
from hccl_tools.table.view import View

PROGRAM = "validate_hccl.py"


def main(argv=None):
    """Runs the command; returns its exit code."""
    options = parse_arguments(argv)
    if options.explain:
        return explain(options.explain)
    generation, origin = host.chosen_generation(options.generation)
    try:
        results = []
        for path in options.files:
            result = judge(path, generation, options)
            results.append(result)
            if options.format == "text":
                print_text(result, origin)
        if options.format == "json":
            print_json(results, generation)
        sys.stdout.flush()
        return max(result["exit"] for result in results)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 2
    except ImportError:
        remedy = interpreter.remedy_for("jsonschema")
        print(f"{PROGRAM}: a table is not well-formed, and to say why needs jsonschema; {remedy}", file=sys.stderr)
        return 2


def parse_arguments(argv):
    """The command line as a namespace."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    add = parser.add_argument
    add("files", metavar="FILE", nargs="*", help="rank tables; - is standard input")
    add(
        "--generation",
        choices=(*rules.GENERATIONS, "any"),
        help="check the rules of this chip generation too (default: that of this host's NPUs if it has some, else any)",
    )
    add("--format", choices=("text", "json"), default="text", help="how to print (default: %(default)s)")
    add(
        "--against-host",
        "--against_host",
        action="store_true",
        help="compare with this host: its addresses, those of its devices, RANK_ID, RANK_SIZE, DEVICE_ID",
    )
    add(
        "--hccn_conf",
        "--hccn-conf",
        metavar="FILE",
        default=hccn.DEFAULT_CONF,
        help="addresses of the devices where hccn_tool is not on PATH (default: %(default)s)",
    )
    add("--explain", metavar="CODE", help="say what a code means, and no more")
    options = parser.parse_args(argv)
    if not options.files and not options.explain:
        parser.error("name at least one FILE, or - for standard input")
    return options


def explain(code):
    """Prints what `code` means; returns the exit code."""
    from hccl_tools.check import explain as explanations  # only here: it brings every rule along

    text = explanations.text(code)
    if text is None:
        known = ", ".join(explanations.entries())
        print(f"{PROGRAM}: no such code: {one_line(code)}; the codes are {known}", file=sys.stderr)
        return 2
    sys.stdout.write(text)
    return 0


def judge(path, generation, options):
    """What there is to say about one file, as a dict."""
    result = {"file": path, "exit": 0, "problems": []}
    try:
        data = rank_table.read_stream(sys.stdin.buffer) if path == "-" else rank_table.read_bytes(path)
    except (rank_table.NotReadable, OSError) as error:
        return {**result, "exit": 2, "unreadable": getattr(error, "reason", str(error))}
    table, problems = verdict.check_bytes(data, generation)
    if path != "-" and os.path.isfile(path):
        problems += filter(None, [verdict.path_problem(path)])
    if not errors(problems):
        name, _ = formats.detect(table)
        result.update(table_format=name, **counts(table, name))
        if options.against_host:
            problems += compare_with_host(table, name, options.hccn_conf, data)
    return {**result, "exit": 1 if errors(problems) else 0, "problems": problems}


def compare_with_host(table, name, conf, data):
    """The problems of a good table on this host."""
    from hccl_tools.check import against_host
    from hccl_tools.table import positions

    return positions.placed(against_host.problems(table, name, conf), data)


def counts(table, name):
    """How many servers and ranks a good table has; 2.0 has no servers."""
    if name == "v2.0":
        return {"servers": None, "ranks": len(table["rank_list"])}
    if "server_list" in table:  # may be large: no View for that
        listed = table["server_list"]
        return {"servers": len(listed), "ranks": sum(len(server["device"]) for server in listed)}
    view = View(table, name)
    return {"servers": len(view.servers), "ranks": len(view.devices)}


def print_text(result, origin):
    """One line a problem, then one about the file."""
    shown = "stdin" if result["file"] == "-" else one_line(result["file"])
    if "unreadable" in result:
        print(f"{PROGRAM}: {shown} {result['unreadable']}", file=sys.stderr)
        return
    problems = result["problems"]
    if problems:
        print("\n".join(problem.line(shown) for problem in problems))
    bad = len(errors(problems))
    warned = len(problems) - bad
    warnings = f"{warned} warning{'s' * (warned != 1)}" if warned else ""
    if bad:
        print(f"{shown}: {bad} problem{'s' * (bad != 1)}{', ' * bool(warned)}{warnings} ({origin})")
        return
    servers = "" if result["servers"] is None else f"servers: {result['servers']}, "
    about = f"{formats.FORMATS[result['table_format']]}, {servers}ranks: {result['ranks']}"
    print(f"{shown}: good{', ' * bool(warned)}{warnings}: {about} ({origin})")


def print_json(results, generation):
    """One JSON document about all files."""
    import json

    words = {0: "good", 1: "bad", 2: "unreadable"}
    files = []
    for result in results:
        entry = {"file": result["file"], "verdict": words[result["exit"]]}
        entry.update((key, result[key]) for key in ("table_format", "servers", "ranks", "unreadable") if key in result)
        entry["problems"] = [problem_as_dict(problem) for problem in result["problems"]]
        files.append(entry)
    print(json.dumps({"generation": generation, "files": files}, indent=2))


def problem_as_dict(problem):
    """A Problem under the names that the JSON output has for it."""
    return {
        "code": problem.code,
        "severity": problem.severity,
        "pointer": problem.pointer,
        "line": problem.row,
        "column": problem.column,
        "text": problem.text,
        "remedy": problem.remedy,
    }
