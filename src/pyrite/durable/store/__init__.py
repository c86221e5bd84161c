"""Where the nodes of durable jobs are: in a SQLite file of a folder, or in ZooKeeper."""
