"""Google's Secret Manager over REST, with its rules and its refusals; regional secrets are not served."""
