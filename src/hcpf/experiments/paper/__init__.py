"""The figures of the paper's tables."""
