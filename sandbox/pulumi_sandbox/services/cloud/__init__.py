"""Emulators for cloud services, over their real REST paths; each is an app and, run by name, a process."""
