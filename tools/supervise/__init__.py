"""Supervises a job: one loop sleeps until something happens, decides what it means, and leaves nothing running."""
