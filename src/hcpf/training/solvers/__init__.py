"""The solvers: how one pass over the data changes the factors."""
