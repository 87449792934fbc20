"""What scripts/doctor.sh looks at: a module a section of its page.

A module has QUESTIONS, commands that are all asked at the same time, and `lines`, which judges the
answers and what files of the system say.
"""
