"""Fitted models: prediction, ranking, explanation, fold-in, saving and loading."""
