"""What a fit gives, and all that can be asked of it."""
