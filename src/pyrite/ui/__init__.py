"""The page that shows runs, workloads and durable jobs, and the server behind it."""
