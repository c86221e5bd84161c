"""Members: light jobs on several processes and hosts, joined by distributed edges."""
