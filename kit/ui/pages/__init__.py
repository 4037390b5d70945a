"""Pages of the app, one module each."""
