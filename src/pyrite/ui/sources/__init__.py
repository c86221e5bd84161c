"""Where the page reads from: runs, workloads and deployments of durable jobs."""
