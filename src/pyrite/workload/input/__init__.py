"""What a user gives: jobs, their commands, the schedule and the options; and the plan of them."""
