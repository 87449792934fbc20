"""The process beside the launcher that names slow ranks and writes metrics (--straggler, --metrics)."""
