"""The engines: which ranks each one starts where, and what runs beside it."""
