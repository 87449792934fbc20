"""Launches distributed MindSpore trainings.  Its command is ``mslaunch``; its modules are for no other program."""

__version__ = "1.0.0"
