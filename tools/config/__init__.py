"""Training configs; nothing here imports MindSpore."""
