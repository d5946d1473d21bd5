"""Forecasts of the claims of an update, and claims that are skipped because no account is free."""
