"""MCP servers as tools: what deck.yaml names, what of it was accepted, and the sessions with it."""
