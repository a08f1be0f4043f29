"""From data and settings to a fitted model: the loop, its solvers and its collective."""
