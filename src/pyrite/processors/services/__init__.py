"""Steps that call something outside the job for each item: async functions, and functions that use
a client. `calling.py` has the steps, `caller.py` makes the calls, `service.py` the clients."""
