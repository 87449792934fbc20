"""What scripts/doctor.sh looks at: a module a section of its page; section.py says what such a module has."""
