"""The distribution of a pair's value: compound Poisson and hurdle, and averages over draws."""
