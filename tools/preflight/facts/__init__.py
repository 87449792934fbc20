"""The facts of a host: one module per subject, each with functions that take the Question."""
