"""Looking at a pipeline before it runs: samples of its sources as light jobs in this process."""
