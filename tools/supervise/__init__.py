"""Supervision: one loop that sleeps until something happens, decides, and leaves nothing running."""
