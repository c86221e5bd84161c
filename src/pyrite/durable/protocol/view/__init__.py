"""What the coordinator knows: peers, jobs and their parts. Each question that a rule asks has an
index, so that an event costs the same with 10 peers as with 1,000."""
