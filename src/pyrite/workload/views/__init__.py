"""What people see of a run: the sentences about its failures, the output of a job as it is written,
and the report."""
