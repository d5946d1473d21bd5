"""`credfleet preview-report`: a preview as a review for a pull request."""
