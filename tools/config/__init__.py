"""Training configs. Nothing here imports MindSpore."""
