"""What several rooms need of the operating system: which processes live, and files that are
private."""
