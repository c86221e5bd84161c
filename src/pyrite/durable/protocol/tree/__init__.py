"""The nodes of the store, as typed data. A store only has to apply the writes, in transactions that
check the epoch of the leader."""
