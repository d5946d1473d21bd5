"""Google's Secret Manager over REST, with its rules and its refusals, global secrets and regional ones."""
