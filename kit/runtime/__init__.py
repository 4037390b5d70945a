"""One turn: dispatch, agents, models, tools, and the events they leave."""
