"""What people read: the ranks' output while they run, the report, and what --dry_run prints."""
