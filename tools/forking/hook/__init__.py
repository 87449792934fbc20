"""The first folder in PYTHONPATH of the parent of ranks that import once; see sitecustomize.py in it."""
