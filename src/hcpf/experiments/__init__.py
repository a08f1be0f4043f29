"""Reproduction of the paper's figure and tables, each by one command."""
