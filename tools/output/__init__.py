"""Output for people: the ranks' output while they run, the report, and the plan that --dry_run prints."""
