"""The account pool: pooled credential Secrets, and atomic claims on them."""
