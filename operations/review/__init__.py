"""`credfleet review`: previews any environment without the ability to decrypt."""
