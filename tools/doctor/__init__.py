"""The checks of scripts/doctor.sh: one module per section of its page; page.py lists what such a module has."""
