"""A stored run as one HTML file to hand in."""
