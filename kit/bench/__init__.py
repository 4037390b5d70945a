"""Measure: routing over case files, cost of a turn, figures."""
