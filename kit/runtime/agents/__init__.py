"""Agents of a turn: the one LLM agent, its hand-off and its contract, and agents without a model."""
