"""What benchmarks yield: tables of figures, as text for the screen and as Markdown for a page."""

import dataclasses
import statistics
import textwrap


@dataclasses.dataclass
class Table:
    """Figures that were measured together: the rows can be compared with each other and with nothing else.

    `columns` are the headings, of which the first names what a row is; `rows` have a cell for each.  `note` says
    how it was measured.  `bars`, if it is given, is (unit, {name: value}) for the chart.
    """

    title: str
    columns: list
    rows: list
    note: str = ""
    bars: tuple = ()

    def text(self):
        """For the screen, in aligned columns."""
        lines = [self.columns, *self.rows]
        widths = [max(len(str(line[index])) for line in lines) for index in range(len(self.columns))]
        shown = [
            "  ".join(
                str(cell).ljust(width) if not index else str(cell).rjust(width)
                for index, (cell, width) in enumerate(zip(line, widths))
            ).rstrip()
            for line in lines
        ]
        return "\n".join([self.title, *(f"  {line}" for line in shown)])

    def markdown(self):
        """For a page; numbers are aligned to the right."""
        lines = [self.columns, ["---", *["---:"] * (len(self.columns) - 1)], *self.rows]
        table = "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
        return "\n\n".join(filter(None, [f"## {self.title}", textwrap.fill(self.note, 120), table]))


def compared(title, times, ours, note, unit="ms"):
    """A Table of {name: [values]}: medians, and how many times the median of `ours` each of them is.

    A launcher that hung has an infinite value; its name says in how many runs.
    """
    medians = {name: statistics.median(values) for name, values in times.items()}
    rows = []
    for name, values in times.items():
        hung = sum(value == float("inf") for value in values)
        more = f" (hung in {hung} of {len(values)} runs)" if hung else ""
        measured = [f"{medians[name]:,.1f} {unit}", f"{medians[name] / medians[ours]:.2f}"]
        if medians[name] == float("inf"):
            measured = ["-", "-"]
        rows.append([name + more, *measured, len(values)])
    shown = {name: median for name, median in medians.items() if median != float("inf")}
    return Table(title, ["", "median", f"times {ours}", "runs"], rows, note, (unit, shown))


def show(tables):
    """Prints tables as they come; returns the exit code of a benchmark."""
    for table in tables:
        print(table.text(), end="\n\n", flush=True)
    return 0
