"""Google's Secret Manager over REST, with its rules and error messages, for global and regional secrets."""
