"""Variational inference: exact coordinate ascent, minibatch and single-entry stochastic ascent."""
