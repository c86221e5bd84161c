"""The source files of the user's modules: whether the code that runs is that of the plan."""
