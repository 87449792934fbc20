"""Launches under random faults: `make chaos`, or `python -m tests.chaos --help`.

A round draws one or two launches and up to four faults from the seed and its own number, so that both name it.
Afterwards nothing may be left: no process, no lock.  The exit code and the messages must fit the faults.

launches   what is started: script, options, ranks, where the output goes
settings   faults that are there before the start: odd variables, limits, programs that are slow or fail
faults     faults at a moment of the run: signals to our processes, damage to the log folder
imports    --import_once, and a fault for the process that imports
imported   the module that it imports
processes  which processes of a launch live, and what each of them is
rounds     one round: starts, injects, waits
verdicts   what is allowed after that
main       all rounds, several at once, and the summary
rank       the program that plays a rank
"""
