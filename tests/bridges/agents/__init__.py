"""Agents as their frameworks' own tutorials build them; nothing of the kit is in them but the scripted model of one."""
