"""The experiments that notebooks run, one question a module."""
