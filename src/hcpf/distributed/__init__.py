"""Training on several machines: a collective over messages, and the engine that runs it on Ray."""
