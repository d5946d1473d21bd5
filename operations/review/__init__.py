"""`credfleet review`: the preview of any environment, with nothing that could decrypt."""
