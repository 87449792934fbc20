"""Converts rank tables between formats: what each can express, what is missing for it, and what it omits."""
