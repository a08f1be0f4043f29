"""Models on disk: a folder of tensors, ids and a manifest, without any pickle."""
