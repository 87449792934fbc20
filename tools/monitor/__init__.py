"""The process next to the launcher that names slow ranks and writes metrics (--straggler, --metrics)."""
