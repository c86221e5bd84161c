"""What commands show: answers as text or JSON, tables that fit, and how far a job is."""
