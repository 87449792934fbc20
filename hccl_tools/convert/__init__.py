"""Rank tables in other formats: what each can say, what is missing for it, and what it leaves out."""
