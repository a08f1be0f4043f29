"""Interactions on disk: users in shards, whose files are memory-mapped as they are.

``files`` writes and maps arrays, ``manifest`` describes a folder, ``writing`` and ``streaming``
make one from entries and from tables, ``matrix`` is the matrix over its files, and ``folder`` has
`Shards`, which stands for Interactions wherever those are taken.
"""
