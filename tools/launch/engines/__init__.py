"""The engines in the plan: which ranks each one starts where, and what runs next to it."""
