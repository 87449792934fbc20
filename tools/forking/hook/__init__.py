"""The folder that the parent of ranks which import once has first in PYTHONPATH; see sitecustomize.py in it."""
