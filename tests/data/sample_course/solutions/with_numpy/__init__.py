"""References of the sample course."""
