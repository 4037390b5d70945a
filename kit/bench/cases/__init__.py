"""Labelled cases: how they are read, made and checked."""
