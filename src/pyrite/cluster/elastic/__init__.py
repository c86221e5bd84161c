"""Members that come and go: ZooKeeper says who there is."""
