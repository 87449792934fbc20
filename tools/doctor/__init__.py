"""What scripts/doctor.sh looks at: one module per section of its page; page.py says what such a module has."""
