"""What each fact means: how it is compared, how bad a difference is, and what to do; rows.py has all of it."""
