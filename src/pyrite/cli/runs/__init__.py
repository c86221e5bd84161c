"""The commands that look at what runs and what ran, and cancel it: `jobs`, `cancel` and `top`."""
