"""Logs of other people's tools, read without those tools, and the verdict on two of them."""
