#!/usr/bin/env python3
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
import gc
import os
import sys

if not __package__:  # run as a file: its own folder would hide the package of the same name
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

from hccl_tools import needs

needs.check()

from hccl_tools import check, formats, hccn, host, rank_table, rules
from hccl_tools.problem import errors, one_line
from hccl_tools.view import View

PROGRAM = "validate_hccl.py"


def main(argv=None):
    """Runs the command; returns its exit code."""
    options = parse_arguments(argv)
    if options.explain:
        return explain(options.explain)
    generation, origin = host.chosen_generation(options.generation)
    try:
        verdicts = []
        for path in options.files:
            verdict = judge(path, generation, options)
            verdicts.append(verdict)
            if options.format == "text":
                print_text(verdict, origin)
        if options.format == "json":
            print_json(verdicts, generation)
        sys.stdout.flush()
        return max(verdict["exit"] for verdict in verdicts)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 2
    except ImportError:
        print(
            f"{PROGRAM}: a table is not well-formed, and to say why needs jsonschema; {needs.remedy_for('jsonschema')}",
            file=sys.stderr,
        )
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
    from hccl_tools import explain as explanations  # only here: it brings every rule along

    text = explanations.text(code)
    if text is None:
        known = ", ".join(explanations.entries())
        print(f"{PROGRAM}: no such code: {one_line(code)}; the codes are {known}", file=sys.stderr)
        return 2
    sys.stdout.write(text)
    return 0


def judge(path, generation, options):
    """What there is to say about one file, as a dict."""
    verdict = {"file": path, "exit": 0, "problems": []}
    try:
        data = rank_table.read_stream(sys.stdin.buffer) if path == "-" else rank_table.read_bytes(path)
    except (rank_table.NotReadable, OSError) as error:
        return {**verdict, "exit": 2, "unreadable": str(error)}
    table, problems = check.check_bytes(data, generation)
    if path != "-" and os.path.isfile(path):
        problems += filter(None, [check.path_problem(path)])
    if not errors(problems):
        name, _ = formats.detect(table)
        verdict.update(table_format=name, **counts(table, name))
        if options.against_host:
            problems += compare_with_host(table, name, options.hccn_conf, data)
    return {**verdict, "exit": 1 if errors(problems) else 0, "problems": problems}


def compare_with_host(table, name, conf, data):
    """The problems of a good table on this host."""
    from hccl_tools import against_host, positions

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


def print_text(verdict, origin):
    """One line a problem, then one about the file."""
    shown = "stdin" if verdict["file"] == "-" else one_line(verdict["file"])
    if "unreadable" in verdict:
        print(f"{PROGRAM}: {shown} {verdict['unreadable']}", file=sys.stderr)
        return
    problems = verdict["problems"]
    if problems:
        print("\n".join(problem.line(shown) for problem in problems))
    bad = len(errors(problems))
    warned = len(problems) - bad
    warnings = f"{warned} warning{'s' * (warned != 1)}" if warned else ""
    if bad:
        print(f"{shown}: {bad} problem{'s' * (bad != 1)}{', ' * bool(warned)}{warnings} ({origin})")
        return
    servers = "" if verdict["servers"] is None else f"servers: {verdict['servers']}, "
    about = f"{formats.FORMATS[verdict['table_format']]}, {servers}ranks: {verdict['ranks']}"
    print(f"{shown}: good{', ' * bool(warned)}{warnings}: {about} ({origin})")


def print_json(verdicts, generation):
    """One JSON document about all files."""
    import json

    words = {0: "good", 1: "bad", 2: "unreadable"}
    files = []
    for verdict in verdicts:
        entry = {"file": verdict["file"], "verdict": words[verdict["exit"]]}
        entry.update(
            (key, verdict[key]) for key in ("table_format", "servers", "ranks", "unreadable") if key in verdict
        )
        entry["problems"] = [problem_as_dict(problem) for problem in verdict["problems"]]
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


if __name__ == "__main__":
    gc.disable()  # a large table is a million objects, none of them garbage; the size of a file has a limit
    sys.exit(main())
