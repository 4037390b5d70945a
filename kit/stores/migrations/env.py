"""Alembic runs this file for every command: the scripts run on the connection that `migrate` was given."""

from alembic import context

from kit.stores.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
context.run_migrations()
