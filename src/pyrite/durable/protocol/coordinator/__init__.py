"""The coordinator as a function: `decide` takes what it knows and one event, and returns one entry
of the log.

What a leader has to do around it:

1. It raises the epoch. Every transaction checks it; when one is refused, the leader stops.
2. It replays: `log.repeated` for each entry `log.after` the checkpoint.
3. `takeover.take_over` reads the nodes. Its events are handled, then its watches and timers armed.
4. In a loop it takes the next event: what a watch or a child of /plan, /peer, /cancel or /shutdown
   tells, an offer whose deadline is over, or, when none of these waits, its own `offers.wish`. It
   decides, does the `log.transactions` of the entry, and arms the watches and timers of the
   decision. To arm a watch is to read its node, too.
"""
