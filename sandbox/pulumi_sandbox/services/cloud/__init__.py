"""Emulators of cloud services with their real REST paths; each is an app and can run as a process."""
