"""What the claims of an update will find: forecasts, and what is skipped for want of an account."""
