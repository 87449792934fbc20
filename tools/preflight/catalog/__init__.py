"""The meaning of each fact: how it is compared, how serious a difference is, and what to do; rows.py has all rows."""
