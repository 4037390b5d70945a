"""A framework each: NAME, the PACKAGES whose versions are shown, and `Adapter(spec)`."""
