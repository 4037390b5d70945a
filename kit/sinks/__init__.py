"""Copies of finished turns for others: Opik and OpenTelemetry."""
