"""What a user of durable jobs has in hand: submission, executions, lists of jobs and peers."""
