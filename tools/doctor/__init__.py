"""What scripts/doctor.sh looks at: one module per section of its page; section.py says what such a module has."""
