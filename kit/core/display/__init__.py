"""How values look where a notebook shows them."""
